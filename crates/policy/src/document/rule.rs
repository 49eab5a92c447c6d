//! Limits.

use tidegate_core::rate::UtcOffset;
use tidegate_core::{Cost, Criticality};

use super::read::{Field, Named, OneOrList};
use super::values::Abandoned;
use super::values::Target;
use super::{choice, section};
use crate::policy::{Capacity, KeySource, Settle};
use crate::quantity::{Length, Percent, QuotaText};

section! {
    /// A limit, with what picks its counter.
    RuleDoc "rule" {
        /// What it limits.
        kind "kind": Kind, Follows("`rate` with `quota`, `concurrency` with `limit`, `reserve` with `reserve`, `shed` with `target`"), "\"rate\"", Built;
        /// What picks the counter; several sources make a composite key.
        key "key": OneOrList<KeySource>, Default("\"global\"", "a rule that does not say whom it counts counts everybody together"), "\"caller\"", Built;
        /// How much is allowed in a length of time.
        quota "quota": QuotaText, Nothing("a rate rule needs one"), "\"10/s\"", Built;
        /// How much of it can be taken at once; of a leaky bucket, how many may wait.
        burst "burst": Cost, Follows("the number in the quota; 0 for a leaky bucket"), "20", Built;
        /// How a quota is counted.
        algorithm "algorithm": Algorithm, Default("\"token_bucket\"", "it is exact, allows bursts and needs least memory"), "\"token_bucket\"", Built;
        /// Into how many parts a sliding window is cut.
        buckets "buckets": u64, Default("1", "two counters are off by a few percent at most"), "6", Built;
        /// How many waiting requests of a leaky bucket pass without delay.
        delay "delay": Cost, Default("0", "as in nginx, who has to wait waits"), "2", Built;
        /// Whether no request of a leaky bucket has to wait.
        nodelay "nodelay": bool, Default("false", "as in nginx, who has to wait waits"), "true", Built;
        /// The longest wait of `smooth` and `warm_up` before a request is refused.
        max_wait "max_wait": Length, Default("\"1s\"", "longer waits look like failures to callers"), "\"500ms\"", Built;
        /// How long `warm_up` takes from cold to its full rate.
        warm_up "warm_up": Length, Default("\"10s\"", "caches and compilers need about that"), "\"10s\"", Built;
        /// How many times dearer requests are while cold.
        cold_factor "cold_factor": Cost, Default("3", "as in Guava and Sentinel"), "3", Built;
        /// Where days and months of a fixed window begin.
        timezone "timezone": UtcOffset, Default("\"UTC\"", "it has no summer time"), "\"+02:00\"", Built;
        /// How many may be in flight.
        limit "limit": u64, Nothing("a concurrency rule needs one"), "20", Built;
        /// Limits for callers on a plan.
        plans "plans": Named<LimitDoc>, Nothing("every caller has the same"), "{ gold = { quota = \"1000/s\", burst = 2000 } }", Built;
        /// Limits for requests of a criticality.
        per_criticality "per_criticality": Named<LimitDoc>, Nothing("every criticality has the same"), "{ sheddable = { quota = \"10/s\" } }", Built;
        /// The next value, counted beside the enforced one and never refusing.
        shadow "shadow": LimitDoc, Nothing("nothing is counted beside"), "{ quota = \"80/s\", burst = 160 }", Built;
        /// Whether it refuses, only counts, or does nothing.
        mode "mode": ModeWord, Default("\"enforce\"", "a limit that is written down is meant"), "\"shadow\"", Built;
        /// How many keys it can tell apart before newcomers share one counter.
        max_keys "max_keys": u64, Follows("what `[caller]` says"), "10_000", Built;
        /// What a request costs here, where that is not the route's cost.
        cost "cost": RuleCostDoc, Nothing("the route says what a request costs"), "{ estimate = 0.01, settle = \"response_header:x-cpu-seconds\" }", Built;
        /// The store that instances share its counters in.
        store "store": String, Nothing("every instance counts for itself"), "\"shared\"", NotYet;
        /// Whether a request waits for the store.
        sync "sync": Sync, Default("\"batched\"", "no request waits"), "\"exact\"", NotYet;
        /// How often batches are sent.
        flush "flush": Length, Default("\"50ms\"", "the overshoot of one such time is bounded"), "\"50ms\"", NotYet;
        /// What holds while the store does not answer.
        on_store_failure "on_store_failure": OnStoreFailure, Default("\"last_state\"", "the best guess there is"), "\"local_share\"", NotYet;
        /// What a reserve is a share of: requests in flight, 2 at least, or the limit of an upstream, as it is at the moment.
        capacity "capacity": Capacity, Nothing("a reserve rule needs one"), "\"upstream:orders\"", Built;
        /// The share that only one criticality and higher ones may use. They are counted and never refused by it: the upstream's own limit and queue bound them. Lower ones are refused while what is in flight is at what is open to anybody.
        reserve "reserve": Named<Percent>, Nothing("a reserve rule needs one"), "{ critical = \"20%\" }", Built;
        /// The signals of overload and what they should stay below: shares (`in_flight`, `cpu`, `memory`, `memory_pressure`, `upstream_utilization`), lengths of time (`queue_delay`, `event_loop`), and for a `[signal.NAME]` a number or a share. Any signal above its target counts.
        target "target": Named<Target>, Nothing("a shed rule needs one"), "{ in_flight = \"80%\", queue_delay = \"5ms\", cpu = \"85%\" }", Built;
        /// What may be shed: `sheddable` first, and every next level only after all of the one before.
        order "order": Vec<Field<Criticality>>, Default("[\"sheddable\", \"sheddable_plus\", \"critical\"]", "what nothing works without is never shed slowly"), "[\"sheddable\", \"sheddable_plus\"]", Built;
        /// How long it takes from shedding nothing to shedding all of one level, and back: at most a day.
        ramp "ramp": Length, Default("\"120s\"", "slow enough for autoscaling to help first"), "\"120s\"", Built;
    }
}

section! {
    /// Numbers that stand in for the rule's own; the algorithm and its settings are the rule's.
    LimitDoc "limit" {
        /// How much is allowed in a length of time.
        quota "quota": QuotaText, Nothing("the rule's own"), "\"1000/s\"", Built;
        /// How much of it can be taken at once.
        burst "burst": Cost, Follows("as for a rule with this quota"), "2000", Built;
        /// How many may be in flight.
        limit "limit": u64, Nothing("a concurrency rule needs one"), "100", Built;
    }
}

section! {
    /// What a request costs by one rule.
    RuleCostDoc "cost" {
        /// What is taken when the request comes.
        estimate "estimate": Cost, Default("1", "a request is one unit unless told otherwise"), "0.01", Built;
        /// Where the true cost comes from, once it is known.
        settle "settle": Settle, Nothing("the estimate is the cost"), "\"bytes:response\"", Built;
        /// What a request costs of which the true cost is never heard, because the service does not answer; of bytes, what it costs at least if its caller leaves before the end.
        abandoned "abandoned": Abandoned, Default("\"estimate\"", "what is not known is not made up"), "\"max:2.5\"", Built;
    }
}

choice! {
    /// What a rule limits.
    Kind { Rate "rate" Built; Concurrency "concurrency" Built; Reserve "reserve" Built; Shed "shed" Built; }
}

choice! {
    /// How a quota is counted.
    Algorithm {
        TokenBucket "token_bucket" Built;
        LeakyBucket "leaky_bucket" Built;
        FixedWindow "fixed_window" Built;
        SlidingWindow "sliding_window" Built;
        SlidingLog "sliding_log" Built;
        Smooth "smooth" Built;
        WarmUp "warm_up" Built;
    }
}

choice! {
    /// Whether a rule refuses.
    ModeWord { Enforce "enforce" Built; Shadow "shadow" Built; Disabled "disabled" Built; }
}

choice! {
    /// Whether a request waits for the store.
    Sync { Batched "batched" NotYet; Exact "exact" NotYet; }
}

choice! {
    /// What holds while the store does not answer.
    OnStoreFailure {
        LastState "last_state" NotYet;
        LocalShare "local_share" NotYet;
        Open "open" NotYet;
        Closed "closed" NotYet;
    }
}
