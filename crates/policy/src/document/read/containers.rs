//! Values that hold others: lists, tables by name, and keys that take one of two forms.

use super::{Field, Place, Read, spanned};
use crate::document::spec::Shape;
use crate::problem::{Code, Problem, Problems};
use crate::quantity::shown;
use crate::text::{Entry, Node, Value};

/// Values by names, in the order of the text.
#[derive(Clone, Debug)]
pub(crate) struct Named<T>(pub(crate) Vec<(String, Field<T>)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// One value or several.
#[derive(Clone, Debug)]
pub(crate) struct OneOrList<T>(pub(crate) Vec<Field<T>>);

/// A single value, or a table or list.
#[derive(Clone, Debug)]
pub(crate) enum Either<A, B> {
    Single(A),
    Larger(B),
}

impl<T: Read> Read for Vec<Field<T>> {
    const SHAPE: &'static Shape = &Shape::List(T::SHAPE);

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        let Value::List(items) = &node.value else {
            let label = match T::SHAPE.section() {
                Some(_) => format!("write {}", problems.list(&place.key)),
                None => "write a list: [ … ]".to_owned(),
            };
            problems.push(place.wrong_type(node, "a list").label(label));
            return None;
        };
        let read = |(index, item): (usize, &Node)| {
            let place = element(item, index, T::SHAPE, place);
            spanned(item, item.span, &place, problems)
        };
        Some(items.iter().enumerate().filter_map(read).collect())
    }
}

/// The place of a list's element: "route `charges`", "route 2", or just the list's own for single values.
fn element(item: &Node, index: usize, shape: &Shape, place: &Place) -> Place {
    let Shape::Section(section) = shape else { return place.clone() };
    let name = match item.get("name").map(|name| &name.value) {
        Some(Value::Text(name)) => format!("`{}`", shown(name)),
        _ => (index + 1).to_string(),
    };
    let what = format!("{} {name}", section.noun);
    let path = format!("{}[{index}]", place.path);
    // The header of a list's table is the best thing to point at; an inline one is pointed at as a whole.
    Place { path, what, key: place.key.clone(), span: item.span, example: None }
}

impl<T: Read> Read for OneOrList<T> {
    const SHAPE: &'static Shape = &Shape::OneOrList(T::SHAPE);

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        if matches!(node.value, Value::List(_)) {
            return Vec::read(node, place, problems).map(Self);
        }
        spanned(node, node.span, place, problems).map(|one| Self(vec![one]))
    }
}

impl<T: Read> Read for Named<T> {
    const SHAPE: &'static Shape = &Shape::Named(T::SHAPE);

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        let Value::Table(entries) = &node.value else {
            problems.push(place.no_table(node, problems));
            return None;
        };
        if let Some(problem) = nameless(entries, T::SHAPE, place, problems) {
            problems.push(problem);
            return None;
        }
        let read = |entry: &Entry| {
            let place = match T::SHAPE {
                // Below the top, who it belongs to says more than its noun: "`gold` of `plans` of rule `all`".
                Shape::Section(section) if !place.path.contains('.') => {
                    let what = format!("{} `{}`", section.noun, shown(&entry.key));
                    place.child(&entry.key, what, entry.key_span)
                }
                _ => place.key(&entry.key, entry.key_span),
            };
            spanned(&entry.value, entry.key_span, &place, problems).map(|field| (entry.key.clone(), field))
        };
        Some(Self(entries.iter().filter_map(read).collect()))
    }
}

/// `[rule]` with the keys of a rule in it, where `[rule.NAME]` was meant.
fn nameless(entries: &[Entry], shape: &Shape, place: &Place, problems: &Problems) -> Option<Problem> {
    let Shape::Section(section) = shape else { return None };
    let is_own =
        |entry: &&Entry| section.key(&entry.key).is_some() && !matches!(entry.value.value, Value::Table(_));
    entries.iter().find(is_own)?;
    let message = format!("`{}` has no name", place.key);
    let problem = place.problem(Code::MissingKey, message, place.span);
    let table = problems.table(&place.path, "NAME");
    Some(problem.label(format!("write {table}, with a name of your choice")))
}

impl<A: Read, B: Read> Read for Either<A, B> {
    const SHAPE: &'static Shape = &Shape::Either(A::SHAPE, B::SHAPE);

    fn read(node: &Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        match node.value {
            Value::Table(_) | Value::List(_) => B::read(node, place, problems).map(Self::Larger),
            Value::Text(_) | Value::Number(_) | Value::Boolean(_) | Value::Other(_) => {
                A::read(node, place, problems).map(Self::Single)
            }
        }
    }
}
