//! What is seen of a gateway while it is under load, once a second.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;

use serde_json::Value;
use tidegate_bench_lab::http::ask;
use tidegate_bench_lab::process::Program;
use tidegate_load::drill::Probe;
use tidegate_scenario::record::Look;

/// Looks at a gateway.
pub(crate) struct Watch {
    /// Ends with the play.
    pub(crate) program: Program,
    pub(crate) asked: Asked,
}

/// Whom to ask for the limit of what is in flight. Asking costs the gateway a little, so only those are asked
/// whose limit a scenario looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nobody,
    Envoy(SocketAddr),
    Ours(SocketAddr),
}

impl Probe for Watch {
    fn look(&mut self) -> Look {
        let processor = self.program.processor_time().ok();
        // Who does not answer in time tells nothing, and who does so more than now and then misses what is asked of the limit.
        let seen = match self.asked {
            Asked::Nobody => Ok(Look::default()),
            Asked::Envoy(admin) => {
                ask(admin, GRADIENT).map_err(Into::into).and_then(|answer| gradient(&answer))
            }
            Asked::Ours(admin) => ask(admin, UPSTREAMS).map_err(Into::into).and_then(|answer| ours(&answer)),
        };
        Look { processor, ..seen.unwrap_or_default() }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("asked", &self.asked).finish_non_exhaustive()
    }
}

const UPSTREAMS: &str = "/api/v1/upstreams";
const GRADIENT: &str = "/stats?filter=gradient_controller.concurrency_limit";

fn ours(answer: &str) -> Result<Look, Box<dyn Error>> {
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("no body")?;
    let body: Value = serde_json::from_str(body)?;
    let concurrency = &body["upstreams"][0]["concurrency"];
    let limit = concurrency["limit"].as_f64();
    // Without a limit there is nothing to give a reason for.
    let is_elsewhere = limit.map(|_| concurrency["why"] == "dependency");
    Ok(Look { limit, is_elsewhere, processor: None })
}

/// A line among others: `http.bench.adaptive_concurrency.gradient_controller.concurrency_limit: 600`.
fn gradient(answer: &str) -> Result<Look, Box<dyn Error>> {
    let line = answer.lines().find_map(|line| line.split_once("concurrency_limit: "));
    let (_, limit) = line.ok_or("no such line")?;
    Ok(Look { limit: Some(limit.trim().parse()?), ..Look::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_limit_comes_with_its_reason() {
        let answer = "HTTP/1.1 200 OK\r\n\r\n{\"upstreams\":[{\"concurrency\":{\"limit\":20,\"why\":\"dependency\"}}]}";
        let look = ours(answer).unwrap();
        assert_eq!((look.limit, look.is_elsewhere), (Some(20.0), Some(true)));
    }

    #[test]
    fn an_answer_without_a_limit_tells_nothing() {
        let look = ours("HTTP/1.1 503 Service Unavailable\r\n\r\n{}").unwrap();
        assert_eq!((look.limit, look.is_elsewhere), (None, None));
    }

    #[test]
    fn the_limit_of_the_gradient_is_found_among_chunks() {
        let answer = "HTTP/1.1 200 OK\r\n\r\n4b\r\nhttp.bench.gradient_controller.concurrency_limit: 33\n\r\n0\r\n\r\n";
        let look = gradient(answer).unwrap();
        assert_eq!((look.limit, look.is_elsewhere), (Some(33.0), None));
    }
}
