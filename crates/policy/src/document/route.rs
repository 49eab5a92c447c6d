//! Which requests go where.

use tidegate_core::Cost;

use super::read::{Either, Field, Named, OneOrList};
use super::values::{Host, Method};
use super::{choice, section};
use crate::policy::PathPattern;
use crate::quantity::{Length, QuotaText};

section! {
    /// Which requests go where, and which rules they meet. Routes are tried in order, and the first that matches
    /// is taken; requests that no route takes get 404.
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
        /// A cheaper answer, given instead of the service's.
        degrade "degrade": DegradeDoc, Nothing("refusals are refusals"), "{ when = \"shedding\", status = 200, body = \"[]\" }", Built;
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
    /// A cheaper answer, given instead of the service's. It says so in a field `tidegate-degraded`: `shedding` or `switched`.
    DegradeDoc "degrade" {
        /// When: instead of refusing what the route's upstream cannot bear or its reserve and shed rules hold back (`shedding`), or only when an operator switches the route (`switched`); while it is switched, every request gets it, in both cases.
        when "when": DegradeWord, Default("\"shedding\"", "the answer of the service is better while it can give one"), "\"switched\"", Built;
        /// The status: 200 to 599.
        status "status": u64, Default("200", "callers go on with less"), "200", Built;
        /// The body.
        body "body": String, Default("\"\"", "nothing is known about what callers expect"), "\"[]\"", Built;
        /// The header fields, but for those that come with every answer.
        headers "headers": Named<String>, Nothing("none besides those of every answer"), "{ content-type = \"application/json\" }", Built;
    }
}

choice! {
    /// When a cheaper answer is given.
    DegradeWord { Shedding "shedding" Built; Switched "switched" Built; }
}
