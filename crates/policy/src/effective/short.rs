//! Short forms, written out: what stands behind them has defaults too.

use crate::text::{Entry, Node, Span, Value};

/// The same policy with `listen` as its first `[[listener]]`, and a bare `upstream` as `[upstream.default]`.
pub(super) fn written_out(root: Node) -> Node {
    let Value::Table(entries) = root.value else { return root };
    let (mut kept, mut listeners) = (Vec::new(), Vec::new());
    for mut entry in entries {
        match (entry.key.as_str(), entry.value.value) {
            ("listen", value) => {
                let bind = Node { span: entry.value.span, value };
                listeners.insert(0, table("bind", bind, entry.key_span));
            }
            ("listener", Value::List(items)) => listeners.extend(items),
            ("upstream", value @ Value::Text(_)) => {
                let span = entry.value.span;
                let endpoints = Node { span, value: Value::List(vec![Node { span, value }]) };
                let only = table("endpoints", endpoints, entry.key_span);
                entry.value = table("default", only, entry.key_span);
                kept.push(entry);
            }
            (_, value) => {
                entry.value = Node { span: entry.value.span, value };
                kept.push(entry);
            }
        }
    }
    if !listeners.is_empty() {
        let value = Node { span: root.span, value: Value::List(listeners) };
        kept.push(Entry { key: "listener".to_owned(), key_span: root.span, value });
    }
    Node { span: root.span, value: Value::Table(kept) }
}

fn table(key: &str, value: Node, span: Span) -> Node {
    Node { span, value: Value::Table(vec![Entry { key: key.to_owned(), key_span: span, value }]) }
}
