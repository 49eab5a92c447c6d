//! The codes of problems: stable, so that scripts, searches and the reference can rely on them.

use std::fmt;

use super::Severity;

macro_rules! codes {
    ($($name:ident = $number:literal $severity:ident $title:literal, $meaning:literal, $remedy:literal;)+) => {
        /// What kind of problem it is. A number, once given, keeps its meaning.
        ///
        /// `TG010x` is about reading and keys, `TG011x` to `TG012x` about values, `TG02xx` about things that
        /// refer to each other, `TG03xx` about values that contradict each other, `TG04xx` about whoever is to
        /// carry the policy out: what the gateway and the library need of it, and what the machine gives.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $title] $name = $number,)+
        }

        impl Code {
            /// All of them, by number.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Whether it keeps a policy from being loaded.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }

            /// What it is, in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }

            /// What it means.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }

            /// What to do about it.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

codes! {
    NotText = 100 Error "the file is not text",
        "A policy is UTF-8 text, and the file holds bytes that are not.",
        "Save the file as UTF-8.";
    Syntax = 101 Error "the text cannot be read",
        "The file breaks the grammar of TOML, YAML or JSON. Which one is meant is told by the ending of its name.",
        "Mend the line that is pointed at. Texts stand in quotes: `quota = \"10/s\"`.";
    UnknownKey = 102 Error "unknown key",
        "No such key is known at this place. Nothing is ever skipped silently, for a mistyped limit is no limit.",
        "Correct the name; the message names the nearest one there is.";
    KeyTwice = 103 Error "a key is given twice",
        "One table has the same key more than once, so it is not clear which value counts.",
        "Remove one of them.";
    WrongType = 104 Error "a value of another type is expected",
        "The key is right, but its value is, for example, a text where a number is expected.",
        "Write what the message asks for.";
    MissingKey = 105 Error "a key is missing",
        "Something that is needed here was not given, and there is no default that could be right.",
        "Add the key.";
    TooLarge = 106 Error "the file is too large or nested too deeply",
        "Files up to 16 MiB and nesting up to 64 levels are read, so that no file can exhaust the process.",
        "Split or simplify the file.";
    Yaml = 107 Error "a part of YAML that is not read",
        "Aliases, tags, several documents and keys that are no texts are refused: each can change what a policy says without that being visible.",
        "Write the value out.";
    UnknownChoice = 108 Error "not one of the values allowed",
        "The key takes one of a few words, and this is none of them.",
        "Write one of the words that the message lists.";
    BadName = 109 Error "not usable as a name",
        "Names of rules, routes, listeners and upstreams appear in headers and metrics, so they are made of letters, digits, `_`, `-` and `.`.",
        "Choose another name.";
    QuotaUnit = 110 Error "a quota without a unit",
        "A quota says how much and in which time; a bare number leaves the time open.",
        "Write `\"10/s\"`, `\"10/min\"`, `\"10/hour\"`, `\"10/day\"` or `\"10/month\"`.";
    BadQuota = 111 Error "not a quota",
        "A quota is an amount, a slash and a length of time: `\"10/s\"`, `\"2.5/s\"`, `\"100/30s\"`, `\"5000/day\"`.",
        "Write it in that form.";
    BadDuration = 112 Error "not a length of time",
        "A length of time is a number with a unit: `\"250ms\"`, `\"25s\"`, `\"10min\"`, `\"1h\"`, `\"1day\"`.",
        "Write it in that form, in quotes.";
    BadSize = 113 Error "not a size",
        "A size is a whole number of bytes with a unit: `\"64KiB\"`, `\"10MB\"`, `\"512B\"`.",
        "Write it in that form, in quotes.";
    BadPercent = 114 Error "not a percentage",
        "A share is written as a percentage from 0 to 100: `\"20%\"`.",
        "Write it in that form, in quotes.";
    BadNumber = 115 Error "a number out of range",
        "The number, size or length of time is negative, too small, too large, or has a fraction where only whole numbers make sense.",
        "Write one in the range that the message names.";
    BadAddress = 116 Error "not an address to listen on",
        "An address is an IP address and a port: `\"0.0.0.0:8080\"`, `\"[::]:8080\"`.",
        "Write both. `0.0.0.0` listens on all addresses, `127.0.0.1` on this machine only.";
    BadUrl = 117 Error "not the URL of an upstream",
        "An endpoint is a URL of scheme, host and, where needed, port: `\"http://127.0.0.1:3000\"`.",
        "Write it in that form. Paths are not part of it: requests keep their own.";
    BadPath = 118 Error "not a pattern for paths",
        "A pattern begins with a slash; `*` stands for one segment and `/**` at the end for any number of them.",
        "Write it in that form.";
    BadSource = 119 Error "not something a key can be made of",
        "Keys are made of `caller`, `client-ip`, `header:NAME`, `path`, `route` or `global`; callers are recognised by `header:NAME` and `client-ip`; criticality is read from `header:NAME` and `baggage:NAME`.",
        "Write one of those.";
    BadField = 120 Error "not the name of a header field, a method or a host",
        "These names are compared with what comes over the wire, and no request could ever have this one.",
        "Correct the name.";
    BadNetwork = 121 Error "not an IP address or a network",
        "Trusted proxies are IP addresses and networks: an address, a slash, and how many of its bits count; the bits beyond are zero.",
        "Write `\"192.0.2.7\"`, `\"10.0.0.0/8\"` or `\"2001:db8::/32\"`.";
    BadTimezone = 122 Error "not a time zone",
        "Calendar windows begin at midnight of UTC or of a fixed offset from it.",
        "Write `\"UTC\"` or an offset such as `\"+02:00\"`.";
    NeverSent = 123 Error "a header field that no service gets from its caller",
        "Fields for one hop end at the gateway, and some the gateway writes itself. Whoever counts or chooses by them counts what callers invent, at no cost, and what the service never sees.",
        "Use another field, or what the message names.";
    NotSupported = 190 Error "not supported yet",
        "The key belongs to the language, but this version does not act on it. It is refused rather than skipped, since a protection that was asked for and is not there is worse than none.",
        "Remove it, or wait for a version that supports it.";
    BadVersion = 191 Error "a version of the language that is not known",
        "The file says that it is written for another version of the policy language.",
        "Write `version = 1`.";
    UnknownRule = 201 Error "no such rule",
        "A route or a caller refers to a rule that the policy does not have.",
        "Correct the name, or add the rule.";
    UnknownUpstream = 202 Error "no such upstream",
        "A route or a rule refers to an upstream that the policy does not have, or does not say which of several is meant.",
        "Correct the name, or add the upstream.";
    NameTwice = 203 Error "a name or an address is given twice",
        "Two routes, two listeners or two signals have the same name, so metrics and messages could not tell them apart; or two things bind the same address, or a list names the same twice.",
        "Change or remove one of them.";
    NoCallers = 204 Error "the table of callers is not there",
        "The policy names a file of callers, and it was not read.",
        "Put the file where the policy says.";
    UnknownPlan = 205 Warning "no rule knows this plan",
        "A caller is on a plan for which no rule has a limit of its own, so the plan changes nothing.",
        "Correct the name, or add the plan to a rule.";
    EndpointTwice = 206 Error "an endpoint is given twice",
        "One upstream has the same endpoint more than once, so its share of requests and its limits would be counted as those of two.",
        "Remove one of them.";
    UnknownSignal = 207 Error "no such signal",
        "A shed rule has a target for a signal that is neither measured always nor one of the policy's own.",
        "Correct the name, or add `[signal.NAME]`.";
    UnusedRule = 210 Warning "no route uses this rule",
        "The rule never limits anything, because no route lists it.",
        "Add it to the `rules` of a route, or remove it.";
    UnusedUpstream = 211 Warning "no route uses this upstream",
        "Nothing is ever sent there.",
        "Name it as the `upstream` of a route, or remove it.";
    BurstBelowCost = 301 Error "a cost that can never be paid",
        "A request costs more than the rule allows at once, so it would be refused for ever, however idle the service is.",
        "Raise the burst (or the quota of a window) to the cost at least, or lower the cost.";
    BurstOfWindow = 302 Error "an algorithm without a burst",
        "Windows allow their whole quota at once and warm-up never more than its rate, so a burst could only contradict them.",
        "Remove `burst`, or choose `token_bucket`, `leaky_bucket` or `smooth`.";
    NotForThis = 303 Error "a key that does nothing here",
        "The key belongs to another algorithm or another kind of rule and would be without effect.",
        "Remove it, or choose the algorithm or kind it belongs to.";
    TooManyRules = 304 Error "too many rules for one route",
        "A request can meet at most 16 rules, shadow values counted, so that deciding about it needs no memory of its own.",
        "Split the route, or merge rules.";
    TooMany = 305 Error "more than can be kept apart",
        "A rule has numbers for at most 7 plans and a key of at most 8 sources, all callers together at most 16384 limits of their own, an upstream at most 1024 endpoints, there are at most 32 signals, and there are at most 1024 networks of trusted proxies, so that memory and the time of a decision are bounded.",
        "Merge plans, endpoints or networks, or use a shorter key.";
    OutOfReach = 306 Error "a limit that cannot be kept",
        "The numbers are beyond what can be counted: most often a burst that takes longer than 400 days to fill.",
        "Use smaller numbers, as the message says.";
    DelayAndBurst = 307 Error "contradicting ways to wait",
        "`nodelay` lets nobody wait and `delay` says how many need not; and no more can pass undelayed than may wait at all.",
        "Keep one of the two, with `delay` not above `burst`.";
    ExemptWithRules = 308 Error "an exempt route with rules",
        "Requests of an exempt route meet no rules and are never shed, so listing rules or having a cheaper answer contradicts it.",
        "Remove `exempt`, or `rules` and `degrade`.";
    OpenAdmin = 309 Error "an admin API that anybody could use",
        "The admin API can change limits and drain the process. On an address that others can reach it needs a token.",
        "Let it listen on loopback, `admin = \"127.0.0.1:9900\"`, or give it a token: `admin_token = { env = \"TIDEGATE_TOKEN\" }`.";
    TimeoutTooShort = 310 Warning "a time-out that its parts outlast",
        "Within the time-out of the whole, something has to happen that may take longer by itself.",
        "Raise the time-out, or shorten that of the part.";
    NeverReached = 311 Warning "a route or an assignment that is never reached",
        "Routes are tried in order, and so are assignments of criticality, and an earlier one takes every request that this one would.",
        "Move the narrower one before the wider one, or remove it.";
    MayBeAbsent = 312 Warning "a key that requests may lack",
        "Requests without the field all share one counter, apart from every caller that has it; and who sends another one each time is never refused.",
        "Let callers be recognised by a second source, and count by caller.";
    PlansWithoutCallers = 313 Warning "plans that nobody is on",
        "Which caller is on which plan stands in the table of callers, and the policy names none.",
        "Add `table` to `[caller]`, or remove the plans.";
    ProxyProtocolFromNobody = 314 Error "a PROXY protocol that nobody speaks",
        "It is required from trusted proxies and never looked for in what others send, so without any it could not be read at all.",
        "Add the networks of your proxies to `trusted_proxies`, or remove `client_address`.";
    TwoPlaces = 315 Error "a secret in two places",
        "It stands in an environment variable or in a file; with both it is not clear which one counts.",
        "Keep one of `env` and `file`.";
    TrustsEverybody = 316 Warning "everybody is a trusted proxy",
        "Whoever connects can name any address as the caller's and any criticality as its own, and so evade every limit.",
        "List the networks of your proxies, unless nobody else can connect.";
    NobodyTrusted = 317 Warning "a field that is believed from nobody",
        "For whom a request is sent and how critical it is are read only from what trusted proxies send, and there are none.",
        "Add the networks of your proxies to `trusted_proxies`, or remove `client_address` or `from` of `[criticality]`.";
    UpgradeNeedsHttp1 = 318 Error "an upgrade over HTTP/2",
        "A connection turns to another protocol by a request of HTTP/1.1, and the route's upstream may be spoken to in HTTP/2.",
        "Write `protocol = \"http/1.1\"` in the upstream, or send these requests to another.";
    EmptyRange = 319 Error "a lowest value above the highest",
        "Nothing is at least the one and at most the other.",
        "Lower `min`, or raise `max`.";
    BadReserve = 320 Error "a reserve that keeps nothing, or everything",
        "A reserve keeps a share of the places for one criticality and those above it: some place at least, never all of them, and never for the lowest, below which there is nobody.",
        "Write one criticality above `sheddable` and a share such as `\"20%\"`.";
    BadOrder = 321 Error "an order that skips a criticality",
        "Of a level nothing is shed before all lower ones are shed entirely, so an order begins with `sheddable` and leaves none out.",
        "Write the beginning of `[\"sheddable\", \"sheddable_plus\", \"critical\", \"critical_plus\"]`.";
    NotAllTaken = 322 Warning "requests that no route takes",
        "Every route has a condition. The gateway answers 404 to requests that meet none of them, before they reach any upstream.",
        "Add a route without `match`, or with the path `/**` alone, after all others.";
    TooMuchMemory = 323 Error "counters that could take all memory",
        "A sliding log keeps 16 bytes for each request that still counts, and buckets keep 8 each, for every key there may be. Callers could make the rule take more than 1 GiB, which is what a service beside it should be able to spare; the process would be killed when it is busiest.",
        "Lower `max_keys` as the message says, or use `sliding_window` without buckets, or `token_bucket`, whose keys need no more than two numbers.";
    CanBeInvented = 324 Warning "a key that callers can invent",
        "Whatever stands in a header field is taken for a key, so a caller who sends another one with every request never meets its quota, and fills the table of keys for all others.",
        "Put a rule with `key = \"client-ip\"` beside it, with a quota for a whole address; or, where every caller stands in a table, let only those count: `known = \"table\"` in `[caller]`.";
    NoListener = 401 Error "nowhere to listen",
        "A gateway needs an address on which callers reach it, and the policy names none.",
        "Add `listen = \"0.0.0.0:8080\"`, or check the policy with `--for library` if no gateway is to run it.";
    NoUpstream = 402 Error "nowhere to send requests",
        "A gateway needs a service to send requests to, and the policy names none.",
        "Add `upstream = \"http://127.0.0.1:3000\"` with the address of the service.";
    NotForLibrary = 403 Error "a part that the library does not carry out",
        "The gate around a service decides, waits and answers. It neither listens nor connects, has no admin API and measures nothing, so what asks for that would be without effect.",
        "Remove the part, or run the policy with the gateway.";
    NoFile = 404 Error "a file that cannot be read",
        "The policy names a certificate, a key or a token, and its file is not there or may not be read.",
        "Put the file where the policy says, readable by the user that runs the gateway.";
    BadCertificate = 405 Error "a certificate that cannot be used",
        "The files were read, but hold no certificate or no private key as PEM, or the two do not belong together.",
        "Name the file that the message asks for: the certificate chain first, the server's own on top, and its private key.";
    BadToken = 406 Error "a token that cannot be used",
        "The variable is not set, or what was found is not one word of visible ASCII characters.",
        "Set the variable, or write the token into the file, on one line.";
    CannotBind = 407 Error "an address that cannot be listened on",
        "The machine does not let this process listen there: another process does, the address is not one of its own, or the port is below 1024 and the process may not use such ports.",
        "Stop the other process, choose another address, or give the right: `setcap cap_net_bind_service=+ep` on the binary, `AmbientCapabilities=CAP_NET_BIND_SERVICE` in the systemd unit, or `sysctl net.ipv4.ip_unprivileged_port_start=80`.";
    NoLog = 408 Error "a log that cannot be written",
        "The file of the access log cannot be opened, so no record would be kept.",
        "Create its folder, and let the user that runs the gateway write there.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TG{:04}", *self as u16)
    }
}
