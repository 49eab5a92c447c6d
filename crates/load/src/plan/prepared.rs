use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};

use super::{BadPlan, Class, Plan, Protocol};
use crate::keys::{Keys, PLACEHOLDER, Place};

/// A class made ready: what can be built once is built once.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    method: Method,
    headers: HeaderMap,
    body: Bytes,
    path: Path,
    /// The field that holds the key, if one does.
    key: Option<(HeaderName, Keys)>,
}

#[derive(Clone, Debug)]
enum Path {
    Same(Uri),
    /// What stands before and after the key.
    WithKey(String, Keys, String),
}

impl Prepared {
    /// # Errors
    /// When the path or the host cannot be written into a request.
    pub(crate) fn new(plan: &Plan, class: &Class) -> Result<Self, BadPlan> {
        let authority = plan.target.authority();
        let start = match plan.protocol {
            Protocol::Http1 => String::new(),
            Protocol::H2 { .. } => format!("http://{authority}"),
        };
        let bad_path = |_| BadPlan(format!("`{}` cannot be a path", class.path));
        let written: PathAndQuery = class.path.parse().map_err(bad_path)?;
        let path = format!("{start}{written}");
        let (key, path) = match &class.keys {
            Some(keys) => match (&keys.place, path.split_once(PLACEHOLDER)) {
                (Place::Path, Some((before, after))) => {
                    (None, Path::WithKey(before.to_owned(), keys.clone(), after.to_owned()))
                }
                (Place::Path, None) => (None, Path::Same(path.parse().map_err(bad_path)?)),
                (Place::Header(name), _) => {
                    (Some((name.clone(), keys.clone())), Path::Same(path.parse().map_err(bad_path)?))
                }
            },
            None => (None, Path::Same(path.parse().map_err(bad_path)?)),
        };
        let headers = headers(plan, class)?;
        Ok(Self { method: class.method.clone(), headers, body: class.body.clone(), path, key })
    }

    /// The request that carries the key with this number.
    pub(crate) fn request(&self, key: u64) -> Request<Bytes> {
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = match &self.path {
            Path::Same(uri) => uri.clone(),
            Path::WithKey(before, keys, after) => {
                // Both were checked when the plan was: only characters that a path can hold.
                format!("{before}{}{after}", keys.written(key)).parse().unwrap_or_default()
            }
        };
        *request.headers_mut() = self.headers.clone();
        if let Some((name, keys)) = &self.key
            && let Some(value) = keys.header_value(key)
        {
            request.headers_mut().insert(name.clone(), value);
        }
        request
    }
}

fn headers(plan: &Plan, class: &Class) -> Result<HeaderMap, BadPlan> {
    let mut headers = class.headers.clone();
    let is_h2 = matches!(plan.protocol, Protocol::H2 { .. });
    // HTTP/2 says it in the URI.
    if !is_h2 && !headers.contains_key(header::HOST) {
        let host = HeaderValue::from_str(plan.target.authority())
            .map_err(|_| BadPlan(format!("`{}` cannot be a host", plan.target.authority())))?;
        headers.insert(header::HOST, host);
    }
    // Servers want to know that there is none where one is usual.
    if class.body.is_empty() && [Method::POST, Method::PUT, Method::PATCH].contains(&class.method) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    Ok(headers)
}
