//! The process, its listeners and its stores.

use std::net::SocketAddr;

use super::read::Field;
use super::{choice, section};
use crate::quantity::{Length, Size};

section! {
    /// The process itself.
    ServerDoc "server" {
        /// Where the admin API, `/metrics` and the dashboard are served.
        admin "admin": SocketAddr, Nothing("they are not served"), "\"127.0.0.1:9900\"", Built;
        /// The token that the admin API asks for; required off loopback.
        admin_token "admin_token": SecretDoc, Nothing("none is asked for on loopback"), "{ env = \"TIDEGATE_TOKEN\" }", NotYet;
        /// How many workers serve.
        workers "workers": u64, Follows("one per core"), "4", NotYet;
        /// How long requests in flight may take to finish after SIGTERM.
        drain "drain": Length, Default("\"25s\"", "orchestrators kill after thirty seconds"), "\"25s\"", NotYet;
        /// How long to go on accepting after SIGTERM while not ready.
        drain_delay "drain_delay": Length, Default("\"0s\"", "only some load balancers need time to notice"), "\"5s\"", NotYet;
        /// Who may set `x-forwarded-for` and `x-criticality`.
        trusted_proxies "trusted_proxies": Vec<Field<String>>, Default("[]", "nobody is believed unless the policy says so"), "[\"10.0.0.0/8\"]", NotYet;
        /// Where the caller's address comes from behind trusted proxies.
        client_address "client_address": ClientAddress, Default("\"x-forwarded-for\"", "what most proxies send"), "\"x-forwarded-for\"", NotYet;
        /// How many bits of an IPv6 address tell callers apart.
        ipv6_prefix "ipv6_prefix": u64, Default("64", "one subscriber has a whole network of that size"), "64", NotYet;
        /// On which responses `RateLimit` and `RateLimit-Policy` stand.
        ratelimit_fields "ratelimit_fields": RatelimitFields, Default("\"always\"", "callers that know their quota need not run into it"), "\"refused\"", NotYet;
        /// Whether the older `X-RateLimit-*` fields are sent too.
        legacy_ratelimit_fields "legacy_ratelimit_fields": bool, Default("false", "new callers read the standard ones"), "true", NotYet;
        /// Whether responses tell which rules decided.
        debug_headers "debug_headers": bool, Default("false", "they reveal the policy"), "true", NotYet;
    }
}

section! {
    /// A secret that is not in the file.
    SecretDoc "secret" {
        /// The environment variable that holds it.
        env "env": String, Nothing("`file` says where it is"), "\"TIDEGATE_TOKEN\"", NotYet;
        /// The file that holds it.
        file "file": String, Nothing("`env` says where it is"), "\"/run/secrets/token\"", NotYet;
    }
}

choice! {
    /// Where the caller's address comes from.
    ClientAddress {
        XForwardedFor "x-forwarded-for" NotYet;
        Forwarded "forwarded" NotYet;
        ProxyProtocol "proxy_protocol" NotYet;
    }
}

choice! {
    /// On which responses the fields stand.
    RatelimitFields { Always "always" NotYet; Refused "refused" NotYet; Never "never" NotYet; }
}

section! {
    /// An address on which callers are served.
    ListenerDoc "listener" {
        /// What it is called in metrics.
        name "name": String, Follows("`default` for the first, `listener_2` for the second, and so on"), "\"public\"", Built;
        /// The address and port.
        bind "bind": SocketAddr, Required, "\"0.0.0.0:8443\"", Built;
        /// The protocols it speaks.
        protocols "protocols": Vec<Field<Protocol>>, Default("[\"h2\", \"http/1.1\"]", "both are told apart by their first bytes"), "[\"h2\", \"http/1.1\"]", NotYet;
        /// Certificate and key.
        tls "tls": TlsDoc, Nothing("connections are not encrypted"), "{ cert = \"tls.crt\", key = \"tls.key\" }", NotYet;
        /// How many connections it holds, over all workers.
        max_connections "max_connections": u64, Default("20000", "below the usual limit of open files"), "20_000", NotYet;
        /// The largest head of a request.
        max_header_bytes "max_header_bytes": Size, Default("\"64KiB\"", "larger ones are mistakes or attacks"), "\"64KiB\"", NotYet;
        /// The most header fields of a request; beyond it the answer is 431.
        max_headers "max_headers": u64, Default("128", "more are mistakes or attacks"), "128", NotYet;
        /// How long the head of a request may take to come.
        head_timeout "head_timeout": Length, Default("\"10s\"", "slower senders hold connections for nothing"), "\"10s\"", NotYet;
        /// How long a body may pause.
        body_idle_timeout "body_idle_timeout": Length, Default("\"60s\"", "uploads over bad networks pause"), "\"60s\"", NotYet;
        /// How long a connection may be idle.
        idle_timeout "idle_timeout": Length, Default("\"75s\"", "longer than the minute that most balancers keep theirs"), "\"75s\"", NotYet;
    }
}

choice! {
    /// A protocol.
    Protocol { H2 "h2" NotYet; Http1 "http/1.1" NotYet; }
}

section! {
    /// Certificate and key.
    TlsDoc "tls" {
        /// The file of the certificate chain.
        cert "cert": String, Required, "\"tls.crt\"", NotYet;
        /// The file of the private key.
        key "key": String, Required, "\"tls.key\"", NotYet;
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
