//! A request that nobody sent, written on the command line.
//!
//! `POST /v1/charges x-api-key:acct_1` is the method, the path, and header fields. What stands behind a `?`
//! is left out, since rules do not look at it.

use std::net::IpAddr;

use serde_json::{Map, Value, json};
use tidegate_policy::Attributes;

/// The facts of an imagined request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imagined {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    client: Option<IpAddr>,
}

impl Imagined {
    /// Reads a request as it was written, with more fields and the address it comes from.
    ///
    /// # Errors
    /// With what to write instead.
    pub fn read(written: &str, fields: &[String], client: Option<IpAddr>) -> Result<Self, String> {
        let mut words = written.split_whitespace();
        let method = words.next().ok_or("the request is empty; write 'GET /path'")?;
        if !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(format!("`{method}` is not a method; write 'GET {method}' or 'POST {method}'"));
        }
        let path = words.next().ok_or_else(|| format!("the path is missing; write '{method} /path'"))?;
        let headers = words.chain(fields.iter().map(String::as_str)).map(field).collect::<Result<_, _>>()?;
        Self::new(method.to_owned(), path, headers, client)
    }

    /// A request of these parts; names of fields are in lower case.
    ///
    /// # Errors
    /// With what to write instead.
    pub fn new(
        method: String,
        path: &str,
        headers: Vec<(String, String)>,
        client: Option<IpAddr>,
    ) -> Result<Self, String> {
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(format!("`{method}` is not a method; write it like GET or POST"));
        }
        let path = path.split('?').next().unwrap_or(path);
        if !path.starts_with('/') {
            return Err(format!("the path `{path}` does not begin with a slash; write '{method} /{path}'"));
        }
        Ok(Self { method, path: path.to_owned(), headers, client })
    }

    /// As the admin API wants to be asked about it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut headers = Map::new();
        for (name, value) in &self.headers {
            let lines = headers.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
            lines.as_array_mut().into_iter().for_each(|lines| lines.push(value.as_str().into()));
        }
        let mut request = json!({ "method": self.method, "path": self.path, "headers": headers });
        if let Some(client) = self.client {
            request["client"] = client.to_string().into();
        }
        request
    }

    /// As the gate wants to see it.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'_> {
        let host = self.headers.iter().find(|(name, _)| name == "host");
        Attributes {
            method: &self.method,
            path: &self.path,
            host: host.map_or("", |(_, value)| value.split(':').next().unwrap_or(value)),
            headers: &self.headers,
            client: self.client,
            criticality: None,
        }
    }
}

fn field(written: &str) -> Result<(String, String), String> {
    match written.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        }
        _ => Err(format!("`{written}` is not a header field; write 'name:value'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_in_the_example() {
        let fields = ["User-Agent: curl 8".to_owned()];
        let request =
            Imagined::read("POST /v1/charges?x=1 X-Api-Key:acct_1 host:a.example:80", &fields, None);
        let request = request.unwrap();
        let attributes = request.attributes();
        assert_eq!((attributes.method, attributes.path), ("POST", "/v1/charges"));
        assert_eq!(attributes.host, "a.example");
        assert_eq!(attributes.headers.first("x-api-key"), Some(&b"acct_1"[..]));
        assert_eq!(attributes.headers.first("user-agent"), Some(&b"curl 8"[..]));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (written, problem) in [
            ("", "the request is empty; write 'GET /path'"),
            ("/v1", "`/v1` is not a method; write 'GET /v1' or 'POST /v1'"),
            ("GET", "the path is missing; write 'GET /path'"),
            ("GET v1", "the path `v1` does not begin with a slash; write 'GET /v1'"),
            ("GET / key", "`key` is not a header field; write 'name:value'"),
        ] {
            assert_eq!(Imagined::read(written, &[], None).unwrap_err(), problem);
        }
    }
}
