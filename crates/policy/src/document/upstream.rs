//! The services behind the gateway.

use tidegate_core::Cost;

use super::read::{Field, Named};
use super::values::Method;
use super::{choice, section};
use crate::policy::Endpoint;
use crate::quantity::{Length, Percent};

section! {
    /// A service behind the gateway.
    UpstreamDoc "upstream" {
        /// Its addresses: `http` or `https`, host and, unless it is 80 or 443, port.
        endpoints "endpoints": Vec<Field<Endpoint>>, Required, "[\"http://orders-1:8080\", \"http://orders-2:8080\"]", Built;
        /// How an endpoint is chosen.
        balance "balance": Balance, Default("\"p2c-ewma\"", "the less loaded of two avoids slow endpoints without herding"), "\"p2c-ewma\"", Built;
        /// The protocol spoken with it; `auto` is what TLS negotiates, and `http/1.1` without TLS.
        protocol "protocol": ProtocolWord, Follows("`http/1.1`, or `auto` if an endpoint is `https://`"), "\"h2\"", Built;
        /// How long it may take until the head of the answer is there, connecting included; `"0s"` is as long as the caller waits.
        timeout "timeout": Length, Default("\"60s\"", "nearly all callers have given up by then"), "\"2s\"", Built;
        /// How long a connection may take to be made.
        connect_timeout "connect_timeout": Length, Default("\"1s\"", "a lost first packet is sent again only after that time, when another endpoint would have answered"), "\"250ms\"", Built;
        /// How many connections are held to each endpoint, over all workers: 1 to 65535. Over HTTP/1.1 a client address has as many as are free, at most.
        max_connections "max_connections": u64, Default("1000", "what most services accept, and far below the ports of one address"), "100", Built;
        /// How long a connection that nobody uses is kept.
        idle_timeout "idle_timeout": Length, Default("\"60s\"", "most servers close after 75 seconds, and a request sent just then is lost"), "\"30s\"", Built;
        /// How long one attempt may take: a length of time, or a percentile of what was observed.
        attempt_timeout "attempt_timeout": String, Nothing("as long as the request may"), "\"p99.9\"", NotYet;
        /// Deadlines of callers.
        deadline "deadline": DeadlineDoc, EachDefault, "{ accept = [\"grpc-timeout\"], forward = true }", NotYet;
        /// How many requests may be in flight.
        concurrency "concurrency": ConcurrencyDoc, EachDefault, "{ algorithm = \"vegas\", min = 10, max = 400 }", Built;
        /// Whether, when and how often to try again.
        retry "retry": RetryDoc, EachDefault, "{ attempts = 3, budget = \"10%\" }", NotYet;
        /// When to stop calling.
        breaker "breaker": BreakerDoc, Nothing("there is none"), "{ failure_rate = \"50%\" }", NotYet;
        /// How refusals of the service itself are answered here already.
        throttle "throttle": ThrottleDoc, Nothing("there is none"), "{ k = 2.0, over = \"2min\" }", NotYet;
        /// What is answered when it cannot be called.
        fallback "fallback": FallbackDoc, Nothing("failures are failures"), "{ status = 200, body = \"[]\" }", NotYet;
    }
}

choice! {
    /// The protocol spoken with an upstream.
    ProtocolWord { Http1 "http/1.1" Built; H2 "h2" Built; Auto "auto" Built; }
}

choice! {
    /// How an endpoint is chosen.
    Balance { P2cEwma "p2c-ewma" Built; }
}

section! {
    /// Deadlines of callers.
    DeadlineDoc "deadline" {
        /// The header fields that tell them.
        accept "accept": Vec<Field<String>>, Default("[\"grpc-timeout\"]", "it is standard"), "[\"grpc-timeout\"]", NotYet;
        /// Whether what is left is passed on.
        forward "forward": bool, Default("true", "work for a caller that is gone is wasted"), "true", NotYet;
    }
}

section! {
    /// How many requests may be in flight, over all workers; what comes beyond waits for a place.
    ConcurrencyDoc "concurrency" {
        /// How the limit is found: from the queue inside the service (`vegas`), from how much slower answers become (`gradient`), from what the service refuses (`aimd`), or not at all (`fixed`).
        algorithm "algorithm": LimitAlgorithmWord, Default("\"vegas\"", "it needs no numbers"), "\"vegas\"", Built;
        /// The lowest limit: 1 to 65535.
        min "min": u64, Follows("10, or `max` where that is less: some must always pass, or nothing is learnt"), "10", Built;
        /// The highest limit; of `fixed`, the limit: 1 to 65535.
        max "max": u64, Default("1000", "every limit has a bound"), "400", Built;
        /// How long an answer may take before the limit shrinks, however long answers took before.
        latency "latency": Length, Nothing("half of the upstream's `timeout`; 30 s where it has none"), "\"500ms\"", Built;
        /// How requests wait for a place.
        queue "queue": WaitDoc, EachDefault, "{ timeout = \"50ms\", order = \"adaptive_lifo\" }", Built;
    }
}

choice! {
    /// How a limit is found.
    LimitAlgorithmWord { Fixed "fixed" Built; Aimd "aimd" Built; Vegas "vegas" Built; Gradient "gradient" Built; }
}

section! {
    /// How requests wait for a place: the more critical always before the less.
    WaitDoc "queue" {
        /// How long at most, up to 10 minutes; with `"0s"` nobody waits.
        timeout "timeout": Length, Follows("what an answer takes without load, from 50 ms to 1 s, and up to twice that in a burst; while that is not known, 1 s"), "\"50ms\"", Built;
        /// Who comes first among those of the same criticality: the oldest (`fifo`, and `codel`, which lets some leave early while the queue stands), the newest while the queue stands (`adaptive_lifo`), or callers in turn (`fair`).
        order "order": WaitingOrderWord, Default("\"fair\"", "a caller who sends much waits behind itself, not before the others"), "\"adaptive_lifo\"", Built;
        /// How many may wait: 1 to 1000000.
        max_waiting "max_waiting": u64, Default("10000", "every queue has a bound, and its time is up long before"), "1000", Built;
    }
}

choice! {
    /// Who comes first.
    WaitingOrderWord { Fifo "fifo" Built; AdaptiveLifo "adaptive_lifo" Built; Codel "codel" Built; Fair "fair" Built; }
}

section! {
    /// Whether, when and how often to try again.
    RetryDoc "retry" {
        /// How often at most, the first time included.
        attempts "attempts": u64, Default("2", "a second endpoint is usually well"), "3", NotYet;
        /// After which failures.
        when "when": Vec<Field<String>>, Default("[\"connect_failure\", \"refused_stream\"]", "nothing was done yet"), "[\"connect_failure\", \"502\"]", NotYet;
        /// For which methods.
        methods "methods": Vec<Field<Method>>, Default("[\"GET\", \"HEAD\", \"OPTIONS\", \"PUT\", \"DELETE\"]", "doing them twice is doing them once"), "[\"GET\", \"HEAD\"]", NotYet;
        /// The share of attempts that may be retries.
        budget "budget": Percent, Default("\"10%\"", "more multiplies an overload"), "\"10%\"", NotYet;
        /// How long to wait before.
        backoff "backoff": BackoffDoc, EachDefault, "{ base = \"25ms\", max = \"250ms\" }", NotYet;
    }
}

section! {
    /// How long to wait before trying again.
    BackoffDoc "backoff" {
        /// The first time, on average.
        base "base": Length, Default("\"25ms\"", "a lost connection is replaced in that time"), "\"25ms\"", NotYet;
        /// At most.
        max "max": Length, Default("\"250ms\"", "callers wait too"), "\"250ms\"", NotYet;
    }
}

section! {
    /// When to stop calling.
    BreakerDoc "breaker" {
        /// The share of failures that trips it.
        failure_rate "failure_rate": Percent, Default("\"50%\"", "below that, most calls still help"), "\"50%\"", NotYet;
        /// The share of slow calls that trips it.
        slow_rate "slow_rate": Percent, Default("\"100%\"", "slowness alone is not failure"), "\"80%\"", NotYet;
        /// What is slow.
        slow "slow": Length, Nothing("nothing is"), "\"1s\"", NotYet;
        /// The time over which it is counted.
        over "over": Length, Default("\"10s\"", "long enough to be sure, short enough to help"), "\"10s\"", NotYet;
        /// The fewest calls it judges by.
        min_requests "min_requests": u64, Default("20", "fewer prove nothing"), "20", NotYet;
        /// How long it stays open.
        open_for "open_for": Length, Default("\"5s\"", "restarts take about that"), "\"5s\"", NotYet;
        /// How many calls try whether the service is back.
        probes "probes": u64, Default("4", "one could be luck"), "4", NotYet;
    }
}

section! {
    /// How refusals of the service itself are answered here already.
    ThrottleDoc "throttle" {
        /// How many requests are sent for each that is accepted.
        k "k": Cost, Default("2", "the service sees that demand is back within one window"), "2.0", NotYet;
        /// The time over which it is counted.
        over "over": Length, Default("\"2min\"", "as in the SRE book"), "\"2min\"", NotYet;
    }
}

section! {
    /// What is answered when the service cannot be called.
    FallbackDoc "fallback" {
        /// The status.
        status "status": u64, Default("200", "callers go on with less"), "200", NotYet;
        /// The body.
        body "body": String, Default("\"\"", "nothing is known about what callers expect"), "\"[]\"", NotYet;
        /// Its header fields.
        headers "headers": Named<String>, Nothing("none"), "{ content-type = \"application/json\" }", NotYet;
    }
}
