//! What a declaration of the language consists of.

/// A table of the language.
#[derive(Debug)]
pub struct Section {
    /// What one of them is called: `rule`.
    pub noun: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Its keys, in the order in which they are documented.
    pub keys: &'static [Key],
}

/// One key of a table.
#[derive(Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it is for, in one sentence.
    pub about: &'static str,
    /// What its value looks like.
    pub shape: &'static Shape,
    /// What holds when it is left out.
    pub absent: Absent,
    /// A value in TOML.
    pub example: &'static str,
    /// Whether this version acts on it.
    pub support: Support,
}

/// What holds when a key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It must not be left out.
    Required,
    /// This value in TOML, for this reason.
    Default(&'static str, &'static str),
    /// A value that follows from others, said in words.
    Follows(&'static str),
    /// Nothing, which means this.
    Nothing(&'static str),
    /// The defaults of its keys: it is a table.
    EachDefault,
}

/// Whether this version acts on something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Built,
    /// It knows it, and refuses it.
    NotYet,
}

/// What a value looks like.
#[derive(Debug)]
pub enum Shape {
    /// A text of a certain form.
    Text(&'static Form),
    /// A whole number.
    Count,
    /// A number that may have a fraction.
    Amount,
    /// `true` or `false`.
    Boolean,
    /// One of a few words.
    Choice(&'static [(&'static str, Support)]),
    /// Several values in order.
    List(&'static Self),
    /// One value, or several in order.
    OneOrList(&'static Self),
    /// Values by names that the operator chooses.
    Named(&'static Self),
    /// A single value, or something larger.
    Either(&'static Self, &'static Self),
    /// A table.
    Section(&'static Section),
}

/// The form of a text.
#[derive(Debug)]
pub struct Form {
    /// What it is called, with its article: "a length of time".
    pub what: &'static str,
    /// A regular expression for editors; the reading itself is stricter.
    pub pattern: Option<&'static str>,
    /// An example.
    pub example: &'static str,
}

impl Section {
    /// The declaration of a key.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Shape {
    /// The table that it is, or that its parts are.
    #[must_use]
    pub fn section(&self) -> Option<&'static Section> {
        match self {
            Self::Section(section) => Some(section),
            Self::List(inner) | Self::OneOrList(inner) | Self::Named(inner) => inner.section(),
            Self::Either(_, larger) => larger.section(),
            Self::Text(_) | Self::Count | Self::Amount | Self::Boolean | Self::Choice(_) => None,
        }
    }

    /// What it is called in messages and in the reference.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::Text(form) => form.what.to_owned(),
            Self::Count => "a whole number".to_owned(),
            Self::Amount => "a number".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Choice(words) => {
                let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                one_of(&words)
            }
            Self::List(inner) => format!("a list, each {}", inner.what()),
            Self::OneOrList(inner) => format!("{}, or a list of them", inner.what()),
            Self::Named(inner) => format!("a table of names, each {}", inner.what()),
            Self::Either(smaller, larger) => format!("{}, or {}", smaller.what(), larger.what()),
            Self::Section(_) => "a table".to_owned(),
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn one_of(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
