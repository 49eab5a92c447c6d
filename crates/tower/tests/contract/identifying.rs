//! Who is asking, and who may say how critical it is.

use http::Request;
use tidegate_policy::Attributes;
use tidegate_tower::identify::Unclear;
use tidegate_tower::{Identify, Peer};
use tower::{Layer, ServiceExt};

use crate::policies::PER_KEY;
use crate::support::{Inner, Steps, answer, field, layer, request, serve};

fn from(peer: Peer) -> Request<Steps> {
    let mut request = request("alice");
    request.extensions_mut().insert(peer);
    request
}

#[tokio::test(start_paused = true)]
async fn rules_by_address_count_by_the_peer() {
    let per_address = "[rule.per_address]\nkey = \"client-ip\"\nquota = \"1/min\"\n";
    let service = serve([per_address], Inner::default());
    let [one, other] = [[192, 0, 2, 1], [192, 0, 2, 2]].map(|address| Peer::new(address.into()));
    assert_eq!(answer(&service, from(one)).await.status(), 200);
    assert_eq!(answer(&service, from(one)).await.status(), 429);
    assert_eq!(answer(&service, from(other)).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_stranger_cannot_make_itself_critical() {
    let text = r#"
        [criticality]
        from = ["header:x-criticality"]
        default = "sheddable"
        [rule.per_key]
        key = "header:x-api-key"
        quota = "1/s"
        per_criticality = { critical_plus = { quota = "50/s" } }
    "#;
    let service = serve([text], Inner::default());
    let stranger = Peer::new([192, 0, 2, 1].into());
    for (peer, limit) in [(stranger, "q=1"), (stranger.trusted(), "q=50")] {
        let mut request = from(peer);
        request.headers_mut().insert("x-criticality", "critical_plus".parse().unwrap());
        let response = answer(&service, request).await;
        assert_eq!(field(response.headers(), "ratelimit-policy"), format!("\"per_key\";{limit};w=1"));
    }
}

/// Identifies by what a test says.
#[derive(Clone)]
struct Everybody(Result<&'static str, Unclear>);

impl<B> Identify<Request<B>> for Everybody {
    fn identify<T>(
        &self,
        _request: &Request<B>,
        question: impl FnOnce(&Attributes<'_>) -> T,
    ) -> Result<T, Unclear> {
        let headers = vec![("x-api-key".to_owned(), self.0?.to_owned())];
        Ok(question(&Attributes {
            method: "GET",
            path: "/",
            host: "",
            headers: &headers,
            client: None,
            criticality: None,
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn requests_can_be_identified_in_other_ways() {
    let layer = layer([PER_KEY]);
    let service = layer.clone().identify(Everybody(Ok("one"))).layer(Inner::default());
    for key in 0..20 {
        let response = service.clone().oneshot(request(&key.to_string())).await.unwrap();
        assert_eq!(response.status(), 200);
    }
    assert_eq!(service.oneshot(request("another")).await.unwrap().status(), 429);

    let unclear = Everybody(Err(Unclear { what: "who knows" }));
    let service = layer.identify(unclear).layer(Inner::default());
    assert_eq!(service.oneshot(request("alice")).await.unwrap().status(), 400);
}
