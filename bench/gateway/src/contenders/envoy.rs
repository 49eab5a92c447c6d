//! Envoy, with `local_ratelimit`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_bench_lab::programs::envoy;

use crate::case::{Quota, TABLE};
use crate::contender::{Contender, Setup};

pub(crate) const NAME: &str = "Envoy";

pub(crate) struct Envoy {
    program: PathBuf,
}

impl Envoy {
    pub(crate) fn new(program: &Path) -> Self {
        Self { program: program.to_owned() }
    }
}

impl Contender for Envoy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Command {
        envoy::version(&self.program)
    }

    fn configuration(&self, setup: &Setup<'_>) -> (&'static str, String) {
        let actions = setup.quota.map_or("", |_| ACTIONS);
        let limit = setup.quota.map_or(String::new(), limit);
        ("envoy.yaml", envoy::forwarding(setup.between, actions, &limit))
    }

    fn command(&self, file: &Path) -> Command {
        envoy::command(&self.program, file)
    }
}

/// Where a request gets the descriptor from that is counted.
const ACTIONS: &str = "                  rate_limits:
                  - actions:
                    - request_headers: { header_name: x-api-key, descriptor_key: key }
";

/// The filter. A descriptor without a value gets a bucket for each value that comes; the bucket for requests
/// without any descriptor has to be there and never runs dry.
fn limit(quota: Quota) -> String {
    let Quota { per_second, burst } = quota;
    format!(
        r#"          - name: envoy.filters.http.local_ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
              stat_prefix: bench
              token_bucket: {{ max_tokens: 1000000000, tokens_per_fill: 1000000000, fill_interval: 1s }}
              filter_enabled: {{ default_value: {{ numerator: 100 }} }}
              filter_enforced: {{ default_value: {{ numerator: 100 }} }}
              max_dynamic_descriptors: {TABLE}
              descriptors:
              - entries: [{{ key: key }}]
                token_bucket: {{ max_tokens: {burst}, tokens_per_fill: {per_second}, fill_interval: 1s }}
"#
    )
}
