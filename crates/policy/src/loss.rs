//! What is gone when one policy replaces another.
//!
//! A file that was cut while it was written can be a policy by itself, and what it lacks then would be removed without
//! a word. So what is gone is named.

use crate::policy::{Policy, Route};
use crate::quantity::shown;

/// The rules, routes and listeners that `wanted` does not have any more, and the rules that a route does not ask any more,
/// each as people call it.
#[must_use]
pub fn lost(running: &Policy, wanted: &Policy) -> Vec<String> {
    let rules = running.rules.iter().map(|rule| &rule.name);
    let rules = rules.filter(|name| !wanted.rules.iter().any(|rule| rule.name == **name));
    let route = |name: &str| wanted.routes.iter().find(|route| route.name == name);
    let routes = running.routes.iter().map(|route| &route.name).filter(|name| route(name).is_none());
    let listener = |name: &str| wanted.listeners.iter().any(|listener| listener.name == name);
    let listeners = running.listeners.iter().map(|listener| &listener.name).filter(|name| !listener(name));
    let asked = running.routes.iter().filter_map(|before| Some((before, route(&before.name)?)));
    let unasked = asked.flat_map(|(before, after)| {
        let still_there =
            names(running, before).filter(|name| wanted.rules.iter().any(|rule| rule.name == *name));
        let gone = still_there.filter(|name| !names(wanted, after).any(|other| other == *name));
        gone.map(|name| format!("rule `{}` of route `{}`", shown(name), shown(&before.name)))
    });
    let named = |what: &'static str| move |name: &String| format!("{what} `{}`", shown(name));
    let whole =
        rules.map(named("rule")).chain(routes.map(named("route"))).chain(listeners.map(named("listener")));
    whole.chain(unasked).collect()
}

fn names<'a>(policy: &'a Policy, route: &'a Route) -> impl Iterator<Item = &'a str> {
    route.rules.iter().filter_map(|rule| policy.rules.get(*rule)).map(|rule| rule.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, read};

    fn policy(text: &str) -> Policy {
        read(Source::named("a.toml", text.as_bytes()), None).unwrap().0
    }

    const RULES: &str = "rule.a = { quota = \"1/s\" }\nrule.b = { quota = \"1/s\" }\n";

    #[test]
    fn everything_that_is_gone_is_named() {
        let whole = policy(&format!(
            "listen = \"127.0.0.1:1\"\n{RULES}[[route]]\nname = \"r\"\nrules = [\"a\", \"b\"]\n"
        ));
        assert_eq!(lost(&whole, &whole), [""; 0]);
        let other =
            policy(&format!("listen = \"127.0.0.1:1\"\n{RULES}[[route]]\nname = \"r\"\nrules = [\"b\"]\n"));
        assert_eq!(lost(&whole, &other), ["rule `a` of route `r`"]);
        assert_eq!(lost(&other, &whole), [""; 0], "more is no loss");
        let cut = policy("rule.a = { quota = \"9/s\" }\n");
        assert_eq!(lost(&whole, &cut), ["rule `b`", "route `r`", "listener `default`"]);
    }
}
