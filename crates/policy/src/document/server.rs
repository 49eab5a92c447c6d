//! The process, its listeners and its stores.

use std::net::SocketAddr;

use super::read::{Field, Place, Read};
use super::spec::Shape;
use super::{choice, section};
use crate::policy::Network;
use crate::problem::Problems;
use crate::quantity::{Length, Size};
use crate::text::{Node, Value};

section! {
    /// The process itself.
    ServerDoc "server" {
        /// Where the admin API, `/metrics` and the dashboard are served.
        admin "admin": SocketAddr, Nothing("they are not served"), "\"127.0.0.1:9900\"", Built;
        /// The token that the admin API asks for; required off loopback.
        admin_token "admin_token": SecretDoc, Nothing("none is asked for on loopback"), "{ env = \"TIDEGATE_TOKEN\" }", Built;
        /// How many workers serve: 1 to 1024.
        workers "workers": u64, Follows("one per core"), "4", Built;
        /// How long requests in flight may take to finish after SIGTERM.
        drain "drain": Length, Default("\"25s\"", "orchestrators kill after thirty seconds"), "\"25s\"", Built;
        /// How long to go on accepting after SIGTERM while not ready.
        drain_delay "drain_delay": Length, Default("\"0s\"", "only some load balancers need time to notice"), "\"5s\"", Built;
        /// Who may say for whom it sends, and how critical that is: addresses and networks, at most 1024.
        trusted_proxies "trusted_proxies": Vec<Field<Network>>, Default("[]", "nobody is believed unless the policy says so"), "[\"10.0.0.0/8\"]", Built;
        /// Where the caller's address comes from behind trusted proxies. If it is the PROXY protocol, they must all speak it, other peers are closed, and a caller is trusted if the address in its header is listed.
        client_address "client_address": ClientAddressWord, Default("\"x-forwarded-for\"", "what most proxies send"), "\"x-forwarded-for\"", Built;
        /// How many bits of an IPv6 address tell callers apart: 1 to 128.
        ipv6_prefix "ipv6_prefix": u64, Default("64", "one subscriber has a whole network of that size"), "64", Built;
        /// On which responses `RateLimit` and `RateLimit-Policy` stand.
        ratelimit_fields "ratelimit_fields": FieldsWord, Default("\"always\"", "callers that know their quota need not run into it"), "\"refused\"", Built;
        /// What `X-RateLimit-Reset` counts, if the older fields are sent too: seconds from now, or the Unix time.
        legacy_ratelimit_fields "legacy_ratelimit_fields": LegacyFields, Nothing("they are not sent; new callers read the standard ones"), "\"seconds\"", Built;
        /// What becomes of a changed file that loses rules, routes or listeners: it is taken with a warning, or held until `tidegate ctl policy confirm`.
        guard "guard": GuardWord, Default("\"warn\"", "whoever changes the file means it"), "\"refuse\"", Built;
        /// Whether responses tell which rules decided.
        debug_headers "debug_headers": bool, Default("false", "they reveal the policy"), "true", Built;
    }
}

section! {
    /// A secret that is not in the file.
    SecretDoc "secret" {
        /// The environment variable that holds it.
        env "env": String, Nothing("`file` says where it is"), "\"TIDEGATE_TOKEN\"", Built;
        /// The file that holds it, meant from where the policy lies.
        file "file": String, Nothing("`env` says where it is"), "\"/run/secrets/token\"", Built;
    }
}

choice! {
    /// Where the caller's address comes from.
    ClientAddressWord {
        XForwardedFor "x-forwarded-for" Built;
        Forwarded "forwarded" Built;
        ProxyProtocol "proxy_protocol" Built;
    }
}

choice! {
    /// What becomes of a file that loses something.
    GuardWord { Warn "warn" Built; Refuse "refuse" Built; }
}

choice! {
    /// On which responses the fields stand.
    FieldsWord { Always "always" Built; Refused "refused" Built; Never "never" Built; }
}

choice! {
    /// What `X-RateLimit-Reset` counts.
    LegacyWord { Seconds "seconds" Built; Epoch "epoch" Built; }
}

/// The same, for which `true` and `false` are told what to write: two conventions share the name of the field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LegacyFields(pub(crate) LegacyWord);

impl Read for LegacyFields {
    const SHAPE: &'static Shape = LegacyWord::SHAPE;

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        let label = match node.value {
            Value::Boolean(true) => {
                "write \"seconds\" if `X-RateLimit-Reset` counts from now, \"epoch\" if it is a Unix time"
            }
            Value::Boolean(false) => "remove it: they are not sent unless asked for",
            _ => return LegacyWord::read(node, place, problems).map(Self),
        };
        problems.push(place.wrong_type(node, &Self::SHAPE.what()).label(label));
        None
    }
}

section! {
    /// An address on which callers are served.
    ListenerDoc "listener" {
        /// What it is called in metrics.
        name "name": String, Follows("`default` for the first, `listener_2` for the second, and so on"), "\"public\"", Built;
        /// The address and port.
        bind "bind": SocketAddr, Required, "\"0.0.0.0:8443\"", Built;
        /// The protocols it speaks.
        protocols "protocols": Vec<Field<Protocol>>, Default("[\"h2\", \"http/1.1\"]", "both are told apart by their first bytes"), "[\"h2\", \"http/1.1\"]", Built;
        /// Certificate and key.
        tls "tls": TlsDoc, Nothing("connections are not encrypted"), "{ cert = \"tls.crt\", key = \"tls.key\" }", Built;
        /// How many connections it holds, over all workers: 1 to 1048576.
        max_connections "max_connections": u64, Default("20000", "below the usual limit of open files"), "20_000", Built;
        /// How many of them one caller's address (of IPv6 its network, by `ipv6_prefix`) may have, trusted proxies excepted: 1 to 1048576.
        max_connections_per_address "max_connections_per_address": u64, Default("1000", "more than an office behind one address needs, and a twentieth of them all"), "100", Built;
        /// The largest head of a request: 8 KiB to 1 MiB.
        max_header_bytes "max_header_bytes": Size, Default("\"64KiB\"", "larger ones are mistakes or attacks"), "\"64KiB\"", Built;
        /// The most header fields of a request: 1 to 1024; beyond it the answer is 431.
        max_headers "max_headers": u64, Default("128", "more are mistakes or attacks"), "128", Built;
        /// How long the head of a request may take to come, from its first byte or, if it is the first, from the connection's beginning.
        head_timeout "head_timeout": Length, Default("\"10s\"", "slower senders hold connections for nothing"), "\"10s\"", Built;
        /// How long a body may pause, and a caller may take nothing of an answer.
        body_idle_timeout "body_idle_timeout": Length, Default("\"60s\"", "uploads over bad networks pause"), "\"60s\"", Built;
        /// How long a connection may be idle, one that has turned to another protocol too.
        idle_timeout "idle_timeout": Length, Default("\"75s\"", "longer than the minute that most balancers keep theirs"), "\"75s\"", Built;
    }
}

choice! {
    /// A protocol.
    Protocol { H2 "h2" Built; Http1 "http/1.1" Built; }
}

section! {
    /// Certificate and key.
    TlsDoc "tls" {
        /// The file of the certificate chain, meant from where the policy lies.
        cert "cert": String, Required, "\"tls.crt\"", Built;
        /// The file of the private key, meant from where the policy lies.
        key "key": String, Required, "\"tls.key\"", Built;
    }
}

section! {
    /// A store that several instances share counters in.
    StoreDoc "store" {
        /// What it is.
        kind "kind": StoreKind, Default("\"redis\"", "the only one so far"), "\"redis\"", NotYet;
        /// Its servers.
        urls "urls": Vec<Field<String>>, Required, "[\"redis://redis-0:6379\"]", NotYet;
        /// How long to wait for it.
        timeout "timeout": Length, Default("\"5ms\"", "a decision must not take longer than the request"), "\"5ms\"", NotYet;
    }
}

choice! {
    /// What a store is.
    StoreKind { Redis "redis" NotYet; }
}
