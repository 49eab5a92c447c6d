//! Words: which one was meant, when it is not one of ours.

use super::Place;
use super::not_supported;
use crate::document::spec::{Key, Section, Shape, Support, one_of};
use crate::problem::{Code, Problems, nearest};
use crate::quantity::shown;
use crate::text::{Node, Value};

/// Words that other programs use for what a key of ours is called, and slips no distance would find.
const ELSEWHERE: &[(&str, &str)] = &[
    ("rate", "quota"),
    ("limit", "quota"),
    ("max_in_flight", "limit"),
    ("by", "key"),
    ("type", "kind"),
    ("address", "bind"),
    ("port", "listen"),
    ("backend", "upstream"),
    ("target", "upstream"),
    ("proxy_pass", "upstream"),
    ("servers", "endpoints"),
    ("url", "endpoints"),
    ("urls", "endpoints"),
    ("dry_run", "mode"),
    ("enabled", "mode"),
    ("methods", "method"),
    ("location", "match"),
    ("priority", "criticality"),
    ("threads", "workers"),
    ("worker_processes", "workers"),
    ("set_real_ip_from", "trusted_proxies"),
    ("keepalive_timeout", "idle_timeout"),
    ("certificate", "cert"),
    ("private_key", "key"),
    ("websocket", "upgrade"),
];

pub(super) fn suggestion<'a>(written: &'a str, section: &Section) -> Option<&'a str>
where
    'static: 'a,
{
    let near = nearest(written, section.keys.iter().map(|key| key.name));
    let word = written.to_lowercase();
    let elsewhere = ELSEWHERE.iter().filter(|(theirs, ours)| *theirs == word && section.key(ours).is_some());
    near.or_else(|| elsewhere.map(|(_, ours)| *ours).next())
}

pub(super) fn known(section: &Section) -> String {
    let built = |key: &&Key| key.support == Support::Built;
    let names = section.keys.iter().filter(built).map(|key| format!("`{}`", key.name));
    let names: Vec<String> = names.collect();
    names.join(", ")
}

/// The same for the words of choices.
const WORDS_ELSEWHERE: &[(&str, &str)] = &[
    ("on", "enforce"),
    ("enabled", "enforce"),
    ("off", "disabled"),
    ("dry_run", "shadow"),
    ("dry-run", "shadow"),
    ("log", "shadow"),
    ("gcra", "token_bucket"),
    ("in_flight", "concurrency"),
    ("http1", "http/1.1"),
    ("http2", "h2"),
    ("h2c", "h2"),
    ("xff", "x-forwarded-for"),
    ("none", "never"),
    ("unix", "epoch"),
    ("delta", "seconds"),
    ("errors", "failed"),
    ("lifo", "adaptive_lifo"),
];

/// The word of a choice.
pub(crate) fn choice<'a>(
    node: &'a Node,
    shape: &Shape,
    place: &Place,
    problems: &mut Problems,
) -> Option<&'a str> {
    let Shape::Choice(words) = shape else { return None };
    let Value::Text(written) = &node.value else {
        problems.push(place.wrong_type(node, &shape.what()).label("write one of these, in quotes"));
        return None;
    };
    match words.iter().find(|(word, _)| word == written) {
        Some((_, Support::Built)) => Some(written),
        Some((_, Support::NotYet)) => {
            if problems.unsupported == 0 {
                problems.push(not_supported(place, &format!("{} `{written}`", place.key), node.span));
            }
            Some(written)
        }
        None => {
            let allowed: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let message = match allowed.as_slice() {
                [only] => format!("`{}` is not {only}, the only word there is", shown(written)),
                several => format!("`{}` is none of {}", shown(written), one_of(several)),
            };
            let problem = place.value(Code::UnknownChoice, &message, node.span);
            let near = nearest(written, words.iter().map(|(word, _)| *word));
            let lower = written.to_lowercase();
            let elsewhere =
                WORDS_ELSEWHERE.iter().find(|(theirs, _)| *theirs == lower).map(|(_, ours)| *ours);
            let meant = elsewhere.filter(|ours| words.iter().any(|(word, _)| word == ours)).or(near);
            let label = meant.map(|meant| format!("did you mean `{meant}`?"));
            let otherwise = if words.len() == 1 { "write that" } else { "write one of those" };
            problems.push(problem.label(label.unwrap_or_else(|| otherwise.to_owned())));
            None
        }
    }
}
