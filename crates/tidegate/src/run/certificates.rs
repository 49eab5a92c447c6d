//! The certificates of listeners, which are renewed under the same name while we run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tidegate_policy::policy::Policy;
use tidegate_proxy::{Gateway, Pem};

use crate::commands::Failure;
use crate::log;

/// Certificates and keys by listener, as they were read.
pub(super) type Read = BTreeMap<String, Pem>;

/// Reads them all. Everything in a policy is meant from where the policy lies.
pub(super) fn read(policy: &Policy, beside: &Path) -> Result<Read, Failure> {
    let read = |name: &str| {
        let path = beside.join(name);
        std::fs::read(&path).map_err(|problem| Failure::unreadable(&path, &problem))
    };
    let listeners = policy.listeners.iter().filter_map(|listener| Some((listener, listener.tls.as_ref()?)));
    listeners
        .map(|(listener, tls)| {
            Ok((listener.name.clone(), Pem { cert: read(&tls.cert)?, key: read(&tls.key)? }))
        })
        .collect()
}

/// Keeps the gateway's certificates and the files the same.
#[derive(Debug)]
pub(super) struct Certificates {
    beside: PathBuf,
    /// What is shown to callers.
    shown: Read,
    /// What was wrong the last time, so that it is said once.
    failure: Option<String>,
}

impl Certificates {
    pub(super) const fn new(beside: PathBuf, shown: Read) -> Self {
        Self { beside, shown, failure: None }
    }

    /// Shows what the files hold by now. What cannot be used is said, and the certificate before stays: a file
    /// that is half written is whole the next time.
    pub(super) fn renew(&mut self, gateway: &Gateway) {
        match self.try_renew(gateway) {
            Ok(()) => self.failure = None,
            Err(why) if self.failure.as_ref() == Some(&why) => {}
            Err(why) => {
                log::error(&format!("{why}; the certificate before stays"));
                self.failure = Some(why);
            }
        }
    }

    fn try_renew(&mut self, gateway: &Gateway) -> Result<(), String> {
        if self.shown.is_empty() {
            return Ok(());
        }
        let found = read(&gateway.gate().policy(), &self.beside).map_err(|failure| failure.to_string())?;
        for (listener, pem) in found {
            if self.shown.get(&listener) != Some(&pem) {
                gateway.renew(&listener, &pem).map_err(|failure| failure.to_string())?;
                log::info(&format!("listener `{listener}` shows a new certificate"));
                self.shown.insert(listener, pem);
            }
        }
        Ok(())
    }
}
