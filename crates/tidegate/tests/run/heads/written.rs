//! Requests made up of parts that can be read in several ways, the same ones in every run.

/// Numbers that look like chance (xorshift).
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below the count.
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % count as u64).unwrap()
    }

    fn one_of<'a>(&mut self, parts: &[&'a str]) -> &'a str {
        parts[self.below(parts.len())]
    }

    /// Once in so many times.
    fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

const METHODS: &[&str] = &["GET", "POST", "PUT", "PURGE", "purge", "PROPFIND", "OPTIONS"];
const ODD_METHODS: &[&str] = &["get", "Post", "propfind", "TRACE", "trace", "CONNECT"];

const PATHS: &[&str] = &[
    "/a", "/b", "/a/b", "/", "//", "/.", "/..", "/%2e%2e", "/%2E", "/%61", "/%41", "/c%3ad", "/c:d", "/%7B",
    "/{", "/a;x", "/%c3%a9", "/%C3%A9", "/x+y", "/%25", "/|",
];
const ODD_PATHS: &[&str] =
    &["/%2F", "/%5c", "/%00", "\\a", "/\u{e9}", "/%", "/%zz", "#f", "/..;/a", "/a;x/b", "a", "*"];
const QUERIES: &[&str] = &["", "", "", "?", "?q=1", "?/../a", "?a#b", "?%2e"];

const HOSTS: &[&str] =
    &["a.test", "A.Test", "a.test.", "a.test:", "a.test:8080", "b.test", "B.TEST.:81", "[::1]", "[0::1]:80"];
const ODD_HOSTS: &[&str] = &[
    "",
    "a..test",
    ".",
    "a.test:080",
    "a.test:x",
    "a.test, b.test",
    "u@a.test",
    "a test",
    "\u{e9}.test",
    "[::1",
    "a/b",
];

const NAMES: &[&str] = &[
    "x-api-key",
    "x-tier",
    "cookie",
    "x_api_key",
    "x-api_key",
    "x_tier",
    "x.tier",
    "te",
    "keep-alive",
    "x-forwarded-for",
    "x_forwarded_for",
    "x-forwarded-proto",
    "forwarded",
    "x-real-ip",
    "x-criticality",
    "baggage",
    "x-other",
    "x_other",
    "x-original-url",
];
const VALUES: &[&str] = &[
    "a", "b", "free", "gold", "A", "", "a b", "a\tb", "a, b", "a;b", "free ", " free", "\tfree", "a ", " a",
    "a\t", " \t", "trailers", "k=1", "l=2",
];
const ADDRESSES: &[&str] = &[
    "203.0.113.1",
    "203.0.113.2, 127.0.0.2",
    "64:ff9b::203.0.113.1",
    "::ffff:203.0.113.2",
    "6.6.6.6, nonsense",
    "nonsense, 203.0.113.1",
];
const CONNECTIONS: &[&str] = &[
    "keep-alive",
    "x-api-key",
    "keep-alive, X-Tier",
    "x-other , cookie",
    "host",
    "x-forwarded-for",
    "x-api-key;",
    "x api",
    ", te,",
];
/// What no field may have.
const BROKEN: &[&str] = &["a\0b", "a\rb", "a\x7f", "a\x1bb"];

fn method<'a>(dice: &mut Dice) -> &'a str {
    let is_odd = dice.once_in(20);
    dice.one_of(if is_odd { ODD_METHODS } else { METHODS })
}

fn host<'a>(dice: &mut Dice) -> &'a str {
    let is_odd = dice.once_in(12);
    dice.one_of(if is_odd { ODD_HOSTS } else { HOSTS })
}

fn path(dice: &mut Dice) -> String {
    let mut path: String = (0..=dice.below(3)).map(|_| dice.one_of(PATHS)).collect();
    if dice.once_in(12) {
        path += dice.one_of(ODD_PATHS);
    }
    if dice.once_in(40) {
        path = dice.one_of(ODD_PATHS).to_owned();
    }
    path + dice.one_of(QUERIES)
}

/// Fields in random spelling.
fn fields(dice: &mut Dice) -> Vec<(String, String)> {
    let field = |dice: &mut Dice| {
        let name = dice.one_of(NAMES);
        let value = match name {
            "x-forwarded-for" => dice.one_of(ADDRESSES),
            _ if dice.once_in(60) => dice.one_of(BROKEN),
            _ => dice.one_of(VALUES),
        };
        (name.to_owned(), value.to_owned())
    };
    (0..dice.below(6)).map(|_| field(dice)).collect()
}

/// A request as it stands on an HTTP/1 connection. It has no body.
pub fn as_text(dice: &mut Dice) -> String {
    let (method, mut target) = (method(dice), path(dice));
    if dice.once_in(8) {
        target =
            format!("{}{}{target}", dice.one_of(&["http://", "HTTP://", "https://", "ftp://"]), host(dice));
    }
    let version = if dice.once_in(30) { "1.0" } else { "1.1" };
    let mut text = format!("{method} {target} HTTP/{version}\r\n");
    if !dice.once_in(40) {
        text += &format!("Host:{}{}\r\n", dice.one_of(&["", " ", "\t"]), host(dice));
    }
    if dice.once_in(6) {
        text += &format!("Connection: {}\r\n", dice.one_of(CONNECTIONS));
    }
    for (name, value) in fields(dice) {
        let name = if dice.once_in(3) { name.to_ascii_uppercase() } else { name };
        let colon = if dice.once_in(80) { " :" } else { ":" };
        text += &format!("{name}{colon}{}{value}\r\n", dice.one_of(&["", " ", "  ", "\t"]));
    }
    text + "\r\n"
}

/// The fields of a request over HTTP/2.
pub fn as_fields(dice: &mut Dice) -> Vec<(String, String)> {
    let mut all = vec![
        (":method".to_owned(), method(dice).to_owned()),
        (":scheme".to_owned(), "http".to_owned()),
        (":path".to_owned(), path(dice)),
    ];
    let host = host(dice).to_owned();
    if !dice.once_in(20) {
        all.push((":authority".to_owned(), host.clone()));
    }
    if dice.once_in(10) {
        all.push(("host".to_owned(), host));
    }
    for (name, value) in fields(dice) {
        // What a connection of HTTP/2 would be ended for is not sent as often.
        let is_rare = matches!(name.as_str(), "te" | "keep-alive") || BROKEN.contains(&value.as_str());
        if !is_rare || dice.once_in(10) {
            all.push((name, value));
        }
    }
    all
}
