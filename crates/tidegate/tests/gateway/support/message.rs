//! Heads and whole messages of HTTP/1, as they stood on the wire.

/// The first line and the fields of a message, or the fields of its trailers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Empty for trailers.
    pub first_line: String,
    /// In order, spelled as they came.
    pub lines: Vec<(String, String)>,
}

impl Fields {
    /// Reads a head without the empty line at its end.
    pub fn parse(head: &[u8]) -> Self {
        let head = std::str::from_utf8(head).expect("heads in tests are text");
        let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
        let first_line = lines.next().unwrap_or_default().to_owned();
        Self { first_line, lines: lines.map(field).collect() }
    }

    pub fn parse_trailers(lines: &[String]) -> Self {
        Self { first_line: String::new(), lines: lines.iter().map(|line| field(line)).collect() }
    }

    /// The values of a field, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let is_it = |(its, _): &&(String, String)| its.eq_ignore_ascii_case(name);
        self.lines.iter().filter(is_it).map(|(_, value)| value.as_str()).collect()
    }

    /// The only value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() <= 1, "{name} stands there more than once: {self:#?}");
        all.first().copied()
    }

    /// The names of all fields, in lower case and sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.lines.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        names
    }
}

fn field(line: &str) -> (String, String) {
    let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no field: {line:?}"));
    (name.to_owned(), value.trim().to_owned())
}

/// A request or an answer, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub head: Fields,
    /// Without the framing.
    pub body: Vec<u8>,
    pub trailers: Fields,
}

impl Message {
    /// The status of an answer.
    pub fn status(&self) -> u16 {
        let status = self.head.first_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("no answer: {self:?}"))
    }

    /// The method of a request.
    pub fn method(&self) -> &str {
        self.head.first_line.split(' ').next().unwrap_or_default()
    }

    /// The target of a request, as it stood there.
    pub fn target(&self) -> &str {
        self.head.first_line.split(' ').nth(1).unwrap_or_default()
    }

    /// The only value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.head.get(name)
    }

    /// The values of a field, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.head.all(name)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("bodies in tests are text")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|problem| panic!("{problem}: {}", self.text()))
    }
}
