//! Which requests go where.

use tidegate_core::Cost;

use super::read::{Either, Field, Named, OneOrList};
use super::values::{Host, Method};
use super::{choice, section};
use crate::policy::PathPattern;
use crate::quantity::{Length, QuotaText};

section! {
    /// Which requests go where, and which rules they meet.
    RouteDoc "route" {
        /// What it is called in metrics.
        name "name": String, Follows("`route_1` for the first, `route_2` for the second, and so on"), "\"charges\"", Built;
        /// Which requests it takes.
        matches "match": MatchDoc, Nothing("it takes every request"), "{ path = \"/v1/charges/**\" }", Built;
        /// Where they go.
        upstream "upstream": String, Follows("the upstream `default`, or the only one"), "\"orders\"", Built;
        /// The rules they meet, in this order, at most 16.
        rules "rules": Vec<Field<String>>, Default("[]", "a route says what its requests meet"), "[\"per_key\"]", Built;
        /// What they cost: a number, or numbers by method.
        cost "cost": Either<Cost, Named<Cost>>, Default("1", "a request is one unit unless told otherwise"), "{ POST = 5, default = 1 }", Built;
        /// Whether they meet no rules and are never shed: for health checks.
        exempt "exempt": bool, Default("false", "what is exempt cannot be limited at all"), "true", Built;
        /// The protocols a connection may turn to.
        upgrade "upgrade": Vec<Field<Upgrade>>, Default("[]", "upgraded connections are not counted as requests"), "[\"websocket\"]", Built;
        /// Accepts now and does later, at the service's pace.
        park "park": ParkDoc, Nothing("requests are served at once"), "{ queue = \"exports\", drain = \"20/s\" }", NotYet;
        /// Keeps responses.
        cache "cache": CacheDoc, Nothing("nothing is kept"), "{ ttl = \"5s\", stale_if_error = \"10min\" }", NotYet;
        /// What is answered instead when the service cannot.
        degrade "degrade": DegradeDoc, Nothing("refusals are refusals"), "{ when = \"shedding\", status = 200, body = \"[]\" }", NotYet;
    }
}

choice! {
    /// A protocol that a connection may turn to.
    Upgrade { Websocket "websocket" Built; }
}

section! {
    /// Conditions on a request, all of which must hold.
    MatchDoc "match" {
        /// The path: `*` stands for one segment, `/**` at the end for any number.
        path "path": PathPattern, Nothing("any path"), "\"/v1/charges/**\"", Built;
        /// The methods.
        method "method": OneOrList<Method>, Nothing("any method"), "[\"POST\"]", Built;
        /// The hosts.
        host "host": OneOrList<Host>, Nothing("any host"), "\"api.example.com\"", Built;
        /// Header fields and what their first line must be.
        header "header": Named<String>, Nothing("any header"), "{ x-test-mode = \"1\" }", Built;
    }
}

section! {
    /// How requests are parked.
    ParkDoc "park" {
        /// The queue.
        queue "queue": String, Required, "\"exports\"", NotYet;
        /// How fast they are done.
        drain "drain": QuotaText, Nothing("as fast as they succeed"), "\"20/s\"", NotYet;
        /// How many are done at once.
        concurrency "concurrency": u64, Default("1", "one after another harms nobody"), "8", NotYet;
        /// How long one may wait.
        max_age "max_age": Length, Default("\"1h\"", "later nobody is interested"), "\"1h\"", NotYet;
        /// How many may wait.
        max_depth "max_depth": u64, Default("100000", "every queue has a bound"), "100_000", NotYet;
    }
}

section! {
    /// How responses are kept.
    CacheDoc "cache" {
        /// How long one is fresh.
        ttl "ttl": Length, Nothing("as the response says"), "\"5s\"", NotYet;
        /// How long it may stand in for a failure.
        stale_if_error "stale_if_error": Length, Nothing("as the response says"), "\"10min\"", NotYet;
    }
}

section! {
    /// What is answered instead.
    DegradeDoc "degrade" {
        /// When.
        when "when": String, Default("\"shedding\"", "the answer of the service is better while it can give one"), "\"shedding\"", NotYet;
        /// The status.
        status "status": u64, Default("200", "callers go on with less"), "200", NotYet;
        /// The body.
        body "body": String, Default("\"\"", "nothing is known about what callers expect"), "\"[]\"", NotYet;
    }
}
