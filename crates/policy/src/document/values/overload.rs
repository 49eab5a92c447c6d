//! What rules that protect the service itself are told in.

use std::sync::Arc;

use super::{header, refused};
use crate::document::read::{Place, Read, text};
use crate::document::spec::{Form, Shape};
use crate::policy::{Capacity, SignalFrom};
use crate::problem::{Code, Problems};
use crate::quantity::{Unreadable, amount, shown};
use crate::text::{Node, Value};

impl Read for Capacity {
    const SHAPE: &'static Shape = &Shape::Either(
        u64::SHAPE,
        &Shape::Text(&Form {
            what: "an upstream",
            pattern: Some("^upstream:.+$"),
            example: "upstream:orders",
        }),
    );

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        if let Value::Number(_) = node.value {
            let places = u64::read(node, place, problems)?;
            if let Ok(places @ 2..) = u32::try_from(places) {
                return Some(Self::Places(places));
            }
            let message = format!("is {places}, but must be from 2 to {}", u32::MAX);
            let problem = place.value(Code::BadNumber, &message, node.span);
            problems.push(problem.label("write how many requests may be in flight"));
            return None;
        }
        let written = text(node, "a number or an upstream", place, problems)?;
        if let Some(name) = written.strip_prefix("upstream:").filter(|name| !name.is_empty()) {
            return Some(Self::Upstream(Arc::from(name)));
        }
        let label = match amount(written) {
            Some(_) => format!("write {}, without quotes", shown(written)),
            None => "write how many requests may be in flight, or \"upstream:NAME\" for its limit".to_owned(),
        };
        let message = format!("`{}` is neither a number nor an upstream", shown(written));
        problems.push(place.value(Code::BadSource, &message, node.span).label(label));
        None
    }
}

/// A target as it was written; what it may be depends on its signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) written: String,
    pub(crate) is_number: bool,
}

impl Read for Target {
    const SHAPE: &'static Shape = &Shape::Either(
        &Shape::Amount,
        &Shape::Text(&Form { what: "a length of time or a percentage", pattern: None, example: "80%" }),
    );

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        if let Value::Number(number) = &node.value {
            return Some(Self { written: number.clone(), is_number: true });
        }
        let written = text(node, "a number, a length of time or a percentage", place, problems)?;
        Some(Self { written: written.to_owned(), is_number: false })
    }
}

pub(super) fn signal_from(written: &str) -> Result<SignalFrom, Unreadable> {
    match written.split_once(':') {
        Some(("response_header", name)) => header(name, written).map(SignalFrom::ResponseHeader),
        None if written == "api" => Ok(SignalFrom::Api),
        Some(_) | None => refused(
            Code::BadSource,
            written,
            "is not where readings come from",
            "write \"response_header:NAME\" or \"api\"",
        ),
    }
}
