//! Whether a policy can be carried out: the one judgement of `check`, `run` and the admin API.
//!
//! ```text
//! text ──language──> policy ──belongings──> certificates, token ──sockets──> it can be served here
//!        all three         `check` and the start of `run`         `check`; `run` binds them for good
//! ```
//!
//! What is wrong is a problem with its code and its line, whoever finds it. A running gateway that is given another
//! policy has its certificates, its token and its sockets already, so then the language alone is judged.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs::OpenOptions;
use std::hash::Hasher;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;

use rustix::fs::{Access, access};
use tidegate_policy::policy::{LogTarget, Policy, Secret, Tls};
use tidegate_policy::{Code, Problem, Purpose, listener_path, locate};
use tidegate_proxy::{BadPem, Pem, can_bind};

use crate::admin::Token;
use crate::commands::files::Files;

/// What a policy names that lies outside of it.
#[derive(Debug)]
pub(crate) struct Belongings {
    /// Certificates and keys by listener.
    pub(crate) tls: BTreeMap<String, Pem>,
    pub(crate) token: Option<Token>,
    /// What fingerprints are made with, unless it is drawn.
    pub(crate) fingerprints: Option<u64>,
}

/// A policy that can be carried out.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) policy: Policy,
    pub(crate) belongings: Belongings,
    pub(crate) warnings: Vec<Problem>,
}

/// What the text says.
pub(crate) fn language(files: &Files, purpose: Purpose) -> Result<(Policy, Vec<Problem>), Vec<Problem>> {
    files.reading(purpose).read()
}

/// What the text says, and what it names for a gateway.
pub(crate) fn for_start(files: &Files, admin: Option<SocketAddr>) -> Result<Judged, Vec<Problem>> {
    let (policy, warnings) = language(files, Purpose::Run { admin })?;
    let (belongings, found) = belongings(&policy, files);
    if found.is_empty() {
        return Ok(Judged { policy, belongings, warnings });
    }
    Err(warnings.into_iter().chain(locate(files.policy(), found)).collect())
}

/// The same, and whether the machine lets a gateway listen where it is to. That another process listens there is
/// no problem of the policy: most often it is the gateway itself, which goes on while its next policy is checked.
pub(crate) fn for_check(files: &Files, purpose: Purpose) -> Result<(Policy, Vec<Problem>), Vec<Problem>> {
    let Purpose::Run { admin } = purpose else { return language(files, purpose) };
    let Judged { policy, warnings, .. } = for_start(files, admin)?;
    let sockets = policy.listeners.iter().enumerate().map(|(position, listener)| {
        let what = format!("listener `{}`", listener.name);
        (listener_path(files.policy(), position), what, listener.bind)
    });
    let admin =
        policy.server.admin.map(|address| ("server.admin".to_owned(), "the admin API".to_owned(), address));
    let found = sockets.chain(admin).filter_map(|(path, what, address)| {
        let problem = can_bind(address).err().filter(|problem| problem.kind() != ErrorKind::AddrInUse)?;
        Some(cannot_bind(&path, &what, address, &problem))
    });
    let found: Vec<Problem> = found.collect();
    if found.is_empty() {
        return Ok((policy, warnings));
    }
    Err(warnings.into_iter().chain(locate(files.policy(), found)).collect())
}

/// An address that is not to be had.
pub(crate) fn cannot_bind(path: &str, what: &str, address: SocketAddr, why: &io::Error) -> Problem {
    let port = address.port();
    let (reason, help) = match why.kind() {
        ErrorKind::AddrInUse => {
            ("another process listens there".to_owned(), "stop it, or choose another port".to_owned())
        }
        ErrorKind::PermissionDenied => (
            format!("this user may not use port {port}"),
            format!(
                "as root `setcap cap_net_bind_service=+ep` on the binary; for systemd \
                 `AmbientCapabilities=CAP_NET_BIND_SERVICE` in the unit; for all processes `sysctl \
                 net.ipv4.ip_unprivileged_port_start={port}`; or choose a port from 1024"
            ),
        ),
        ErrorKind::AddrNotAvailable => (
            "this machine has no such address".to_owned(),
            format!("write one of its own, or \"0.0.0.0:{port}\" for all of them"),
        ),
        _ => (why.to_string(), "choose another address".to_owned()),
    };
    let message = format!("{what} cannot bind {address}: {reason}");
    Problem::new(Code::CannotBind, message).path(path).help(help)
}

/// Reads what a policy names; everything that is wrong with it.
fn belongings(policy: &Policy, files: &Files) -> (Belongings, Vec<Problem>) {
    let (folder, mut problems) = (files.folder(), Vec::new());
    let mut tls = BTreeMap::new();
    for (position, listener) in policy.listeners.iter().enumerate() {
        let Some(named) = &listener.tls else { continue };
        let path = format!("{}.tls", listener_path(files.policy(), position));
        match pem(named, &folder, &path) {
            Ok(pem) => drop(tls.insert(listener.name.clone(), pem)),
            Err(found) => problems.extend(found),
        }
    }
    let token = match token(policy, &folder) {
        Ok(token) => token,
        Err(problem) => {
            problems.push(*problem);
            None
        }
    };
    let fingerprints = match fingerprints(policy, &folder) {
        Ok(seed) => seed,
        Err(problem) => {
            problems.push(*problem);
            None
        }
    };
    problems.extend(log(policy, &folder));
    (Belongings { tls, token, fingerprints }, problems)
}

fn pem(named: &Tls, folder: &Path, path: &str) -> Result<Pem, Vec<Problem>> {
    let of = |key: &str| format!("{path}.{key}");
    let read = |key: &str, name: &str| {
        std::fs::read(folder.join(name)).map_err(|problem| {
            let place = folder.join(name);
            vec![no_file(Code::NoFile, &of(key), format!("{} cannot be read: {problem}", place.display()))]
        })
    };
    let (cert, key) = match (read("cert", &named.cert), read("key", &named.key)) {
        (Ok(cert), Ok(key)) => (cert, key),
        (cert, key) => return Err([cert.err(), key.err()].into_iter().flatten().flatten().collect()),
    };
    let pem = Pem { cert, key };
    let Err(bad) = pem.check() else { return Ok(pem) };
    let (cert, key) = (folder.join(&named.cert), folder.join(&named.key));
    let (cert, key) = (cert.display(), key.display());
    let (at, message, label) = match bad {
        BadPem::Cert(why) => {
            ("cert", format!("{cert} holds no certificate: {why}"), "write the file of the certificate chain")
        }
        BadPem::Key(why) => {
            ("key", format!("{key} holds no private key: {why}"), "write the file of the private key")
        }
        BadPem::Pair(why) => (
            "key",
            format!("the certificate in {cert} and the key in {key} do not go together: {why}"),
            "write the key that the certificate was made for",
        ),
    };
    Err(vec![Problem::new(Code::BadCertificate, message).path(of(at)).label(label)])
}

fn token(policy: &Policy, folder: &Path) -> Result<Option<Token>, Box<Problem>> {
    // Nobody asks for it then.
    if policy.server.admin.is_none() {
        return Ok(None);
    }
    let (key, read) = match &policy.server.admin_token {
        None => return Ok(None),
        Some(Secret::Env(name)) => ("env", Token::from_env(name)),
        // As everything in a policy, it is meant from where the policy lies.
        Some(Secret::File(name)) => ("file", Token::from_file(&folder.join(name))),
    };
    read.map(Some).map_err(|bad| {
        Box::new(no_file(Code::BadToken, &format!("server.admin_token.{key}"), bad.to_string()))
    })
}

/// The seed of fingerprints: a hash of the key by SipHash-1-3, whose own key is fixed. The key is the secret, and its length is
/// what makes it hard to guess.
fn fingerprints(policy: &Policy, folder: &Path) -> Result<Option<u64>, Box<Problem>> {
    const SHORTEST: usize = 16;
    let path = "telemetry.fingerprint_key";
    let (key, from, read) = match &policy.fingerprint_key {
        None => return Ok(None),
        Some(Secret::Env(name)) => {
            ("env", format!("${name}"), std::env::var(name).map_err(|problem| problem.to_string()))
        }
        Some(Secret::File(name)) => {
            let file = folder.join(name);
            let read = std::fs::read_to_string(&file).map_err(|problem| problem.to_string());
            ("file", file.display().to_string(), read)
        }
    };
    let bad = |why: String| {
        let message = format!("the key of fingerprints in {from} {why}");
        Box::new(
            Problem::new(Code::BadToken, message).path(format!("{path}.{key}")).label("say where the key is"),
        )
    };
    let secret = read.map_err(|problem| bad(format!("cannot be read: {problem}")))?;
    let secret = secret.trim();
    if secret.len() < SHORTEST {
        return Err(bad(format!("has fewer than {SHORTEST} bytes")));
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(secret.as_bytes());
    Ok(Some(hasher.finish()))
}

/// The file of the access log, where it could not be written. It is not created.
fn log(policy: &Policy, folder: &Path) -> Option<Problem> {
    let LogTarget::File(name) = &policy.access_log.as_ref()?.to else { return None };
    let file = folder.join(name);
    let parent = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let tried = match file.metadata() {
        // What is no plain file may wait for a reader.
        Ok(found) if found.is_file() => OpenOptions::new().append(true).open(&file).map(drop),
        Ok(found) if found.is_dir() => Err(io::Error::from(ErrorKind::IsADirectory)),
        Ok(_) => Ok(()),
        Err(_) => access(parent, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from),
    };
    let why = tried.err()?;
    let message = format!("the access log {} cannot be written: {why}", file.display());
    Some(no_file(Code::NoLog, "telemetry.access_log.to", message))
}

fn no_file(code: Code, path: &str, message: String) -> Problem {
    let label = match code {
        Code::NoLog => "write a file in a folder that is there",
        Code::BadToken => "say where the token is",
        _ => "put it there, readable for this user",
    };
    Problem::new(code, message).path(path).label(label)
}
