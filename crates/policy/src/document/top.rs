//! The top of the file, and what belongs to no other table.

use std::net::SocketAddr;

use tidegate_core::Criticality;

use super::read::{Either, Field, Named, OneOrList};
use super::route::{MatchDoc, RouteDoc};
use super::rule::RuleDoc;
use super::server::{ListenerDoc, SecretDoc, ServerDoc, StoreDoc};
use super::upstream::UpstreamDoc;
use super::values::CallerSource;
use super::{choice, section};
use crate::policy::{CriticalitySource, Endpoint, LogTarget, SignalFrom};
use crate::quantity::Percent;

section! {
    /// Everything one file says.
    PolicyDoc "policy" {
        /// The version of the policy language.
        version "version": u64, Default("1", "there is only one so far"), "1", Built;
        /// Where callers connect to: short for one listener called `default`.
        listen "listen": SocketAddr, Nothing("only the `[[listener]]`s listen"), "\"0.0.0.0:8080\"", Built;
        /// The service behind the gateway: a URL, short for `[upstream.default]` with one endpoint, or tables by name.
        upstream "upstream": Either<Endpoint, Named<UpstreamDoc>>, Nothing("decisions are made, and nothing is sent on"), "\"http://127.0.0.1:3000\"", Built;
        /// The process itself.
        server "server": ServerDoc, EachDefault, "{ admin = \"127.0.0.1:9900\" }", Built;
        /// Addresses on which callers are served.
        listener "listener": Vec<Field<ListenerDoc>>, Nothing("`listen` says it, or nobody is served"), "[{ bind = \"0.0.0.0:8080\" }]", Built;
        /// Stores that several instances share counters in.
        store "store": Named<StoreDoc>, Nothing("every instance counts for itself"), "{ shared = { kind = \"redis\", urls = [\"redis://redis-0:6379\"] } }", NotYet;
        /// How callers are recognised and what is known of them.
        caller "caller": CallerDoc, Nothing("callers are told apart by their address"), "{ from = [\"header:x-api-key\", \"client-ip\"] }", Built;
        /// How late requests are shed.
        criticality "criticality": CriticalityDoc, Nothing("every request is `critical`"), "{ default = \"critical\" }", Built;
        /// Signals of overload beside those that are always measured, by name: at most 32.
        signal "signal": Named<SignalDoc>, Nothing("only what is always measured counts"), "{ db_load = { from = \"response_header:x-db-load\" } }", Built;
        /// Limits, by name.
        rule "rule": Named<RuleDoc>, Nothing("nothing is limited"), "{ per_key = { key = \"header:x-api-key\", quota = \"10/s\" } }", Built;
        /// Which requests go where and meet which rules; the first that matches is taken, and requests that none takes get 404.
        route "route": Vec<Field<RouteDoc>>, Nothing("one route `default` takes everything and has every rule"), "[{ match = { path = \"/**\" }, rules = [] }]", Built;
        /// Queues in which requests are parked.
        queue "queue": Named<QueueDoc>, Nothing("nothing can be parked"), "{ exports = { kind = \"embedded\", path = \"exports.redb\" } }", NotYet;
        /// The sidecar, through which the local application calls others.
        egress "egress": EgressDoc, Nothing("there is no sidecar"), "{ bind = \"127.0.0.1:8081\" }", NotYet;
        /// Decisions for Envoy fleets.
        rls "rls": RlsDoc, Nothing("Envoy is not served"), "{ bind = \"127.0.0.1:8082\" }", NotYet;
        /// Where forward-auth of nginx, Traefik and Caddy is answered.
        check "check": CheckDoc, Nothing("forward-auth is not served"), "{ bind = \"127.0.0.1:8083\" }", NotYet;
        /// Logs and traces.
        telemetry "telemetry": TelemetryDoc, Nothing("metrics only"), "{ access_log = { to = \"stdout\" } }", Built;
    }
}

section! {
    /// How callers are recognised and what is known of them.
    CallerDoc "caller" {
        /// What a caller is recognised by; the first that is present wins.
        from "from": OneOrList<CallerSource>, Default("[\"client-ip\"]", "an address is the one thing that every request has"), "[\"header:x-api-key\", \"client-ip\"]", Built;
        /// The file that says which plan a caller is on and what limits are its own.
        table "table": String, Nothing("no caller is on a plan"), "\"callers.toml\"", Built;
        /// Which identities that callers send count: those in `table`, and of others the next source of `from`.
        known "known": KnownWord, Nothing("every identity is a caller of its own, invented ones too"), "\"table\"", Built;
        /// Where snapshots of the same are fetched from.
        snapshot "snapshot": String, Nothing("callers come from `table`"), "\"s3://bucket/prefix\"", NotYet;
        /// How many keys each rule can tell apart before newcomers share one counter.
        max_keys "max_keys": u64, Default("100000", "two megabytes a rule for token buckets and up to ten for windows, to which logs add what they hold, and more callers than most services see in a window"), "200_000", Built;
    }
}

choice! {
    /// Which identities count.
    KnownWord { Table "table" Built; }
}

section! {
    /// How late requests are shed: `critical_plus` last, `sheddable` first.
    CriticalityDoc "criticality" {
        /// Where trusted proxies (`trusted_proxies` of `[server]`) say it; the first that is present wins.
        from "from": OneOrList<CriticalitySource>, Default("[]", "nobody is believed unless the policy says so"), "[\"header:x-criticality\", \"baggage:criticality\"]", Built;
        /// What a request has that nobody assigned anything to.
        default "default": Criticality, Default("\"critical\"", "what production traffic is unless it says otherwise"), "\"critical\"", Built;
        /// What requests have that match; the first that matches wins, over what proxies say too.
        assign "assign": Vec<Field<AssignDoc>>, Nothing("proxies and the default decide"), "[{ match = { path = \"/health\" }, as = \"critical_plus\" }]", Built;
    }
}

section! {
    /// One assignment of a criticality.
    AssignDoc "assignment" {
        /// Which requests it is for.
        matches "match": MatchDoc, Required, "{ method = [\"POST\"], path = \"/v1/charges/**\" }", Built;
        /// What they have.
        criticality "as": Criticality, Required, "\"critical_plus\"", Built;
    }
}

section! {
    /// A signal of overload: a number that grows with the load.
    SignalDoc "signal" {
        /// Where its readings come from: a header field of responses, or the admin API (`api`).
        from "from": SignalFrom, Required, "\"response_header:x-db-load\"", Built;
    }
}

section! {
    /// A queue in which requests are parked.
    QueueDoc "queue" {
        /// What keeps it.
        kind "kind": QueueKind, Default("\"embedded\"", "it needs nothing but a file"), "\"embedded\"", NotYet;
        /// The file of an embedded queue.
        path "path": String, Nothing("an embedded queue needs one"), "\"exports.redb\"", NotYet;
    }
}

choice! {
    /// What keeps a queue.
    QueueKind { Embedded "embedded" NotYet; Nats "nats" NotYet; Amqp "amqp" NotYet; }
}

section! {
    /// The sidecar, through which the local application calls others.
    EgressDoc "egress" {
        /// Where the application connects to.
        bind "bind": SocketAddr, Required, "\"127.0.0.1:8081\"", NotYet;
        /// The upstreams it may call.
        upstreams "upstreams": Vec<Field<String>>, Nothing("all of them"), "[\"orders\"]", NotYet;
    }
}

section! {
    /// Decisions for Envoy fleets, by its rate limit service.
    RlsDoc "rls" {
        /// Where Envoy connects to.
        bind "bind": SocketAddr, Required, "\"127.0.0.1:8082\"", NotYet;
        /// The directory of its own configuration.
        config "config": String, Nothing("descriptors are matched by rules of the same name"), "\"ratelimit/\"", NotYet;
    }
}

section! {
    /// Answers to forward-auth.
    CheckDoc "check" {
        /// Where the proxy connects to.
        bind "bind": SocketAddr, Required, "\"127.0.0.1:8083\"", NotYet;
    }
}

section! {
    /// Logs and traces.
    TelemetryDoc "telemetry" {
        /// The log of requests.
        access_log "access_log": AccessLogDoc, Nothing("none is written"), "{ format = \"json\", to = \"stdout\" }", Built;
        /// The process's own lines, on standard error.
        log "log": LogDoc, EachDefault, "{ format = \"text\", level = \"info\" }", Built;
        /// The key of fingerprints: of at least 16 bytes, and the same on all instances whose fingerprints are to agree.
        fingerprint_key "fingerprint_key": SecretDoc, Nothing("another one is drawn at every start"), "{ env = \"TIDEGATE_FINGERPRINT_KEY\" }", Built;
        /// Where traces are sent to.
        otlp "otlp": String, Nothing("none are sent"), "\"http://otel-collector:4317\"", NotYet;
    }
}

section! {
    /// The log of requests.
    AccessLogDoc "access log" {
        /// How a record is written.
        format "format": LogFormatWord, Default("\"json\"", "programs read it"), "\"json\"", Built;
        /// Where it is written; a file is meant from where the policy lies.
        to "to": LogTarget, Default("\"stdout\"", "whatever runs the process collects it there"), "\"stdout\"", Built;
        /// The share of admitted requests that is written, down to a millionth.
        sample_accepted "sample_accepted": Percent, Default("\"100%\"", "a log with holes surprises"), "\"1%\"", Built;
        /// What is always written.
        always "always": Vec<Field<LogAlwaysWord>>, Default("[\"refused\", \"shadow\"]", "these are what one looks for"), "[\"refused\", \"shadow\"]", Built;
    }
}

section! {
    /// The process's own lines, on standard error. `TIDEGATE_LOG` wins over both keys: a level, a form, or both with a comma between.
    LogDoc "log" {
        /// How a line is written.
        format "format": LogFormWord, Default("\"text\"", "people read it first"), "\"json\"", Built;
        /// From which level on lines are written.
        level "level": LogLevelWord, Default("\"info\"", "what changes is told once, and nothing for each request"), "\"warn\"", Built;
    }
}

choice! {
    /// How one of the process's own lines is written.
    LogFormWord { Text "text" Built; Json "json" Built; }
}

choice! {
    /// How much one of the process's own lines matters.
    LogLevelWord { Error "error" Built; Warn "warn" Built; Info "info" Built; Debug "debug" Built; }
}

choice! {
    /// How a record is written.
    LogFormatWord { Json "json" Built; Text "text" NotYet; }
}

choice! {
    /// What is always written.
    LogAlwaysWord { Refused "refused" Built; Shadow "shadow" Built; Failed "failed" Built; }
}
