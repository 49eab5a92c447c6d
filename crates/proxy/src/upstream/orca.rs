//! How busy an upstream says it is: the load report of ORCA (open request cost aggregation), as header fields of its
//! answers.
//!
//! | field | value |
//! |---|---|
//! | `endpoint-load-metrics` | `TEXT cpu_utilization=0.3,mem_utilization=0.8`, or `JSON {"cpu_utilization": 0.3}` |
//! | `endpoint-load-metrics-bin` | the protobuf `OrcaLoadReport` in base64; its fields 1, 2 and 9 are the three below |
//!
//! What the application says of itself counts first, then its processors, then its memory. Some report more than 1 under
//! overload, and that is as good as 1. What cannot be read says nothing.

use http::{HeaderMap, HeaderName};

const TEXT: HeaderName = HeaderName::from_static("endpoint-load-metrics");
const BINARY: HeaderName = HeaderName::from_static("endpoint-load-metrics-bin");

/// A report is a few numbers; longer ones are not looked at.
const LONGEST: usize = 4_096;

/// The names and the protobuf fields of what is read, the first that is there counts.
const READ: [(&str, u64); 3] =
    [("application_utilization", 9), ("cpu_utilization", 1), ("mem_utilization", 2)];

/// How busy the upstream says it is, from 0 to 1.
pub(crate) fn utilization(headers: &HeaderMap) -> Option<f64> {
    // Most answers have neither, which one look over the names says sooner than two searches.
    if !headers.keys().any(|name| *name == TEXT || *name == BINARY) {
        return None;
    }
    let found = match headers.get(TEXT) {
        Some(value) => in_text(value.to_str().ok().filter(|text| text.len() <= LONGEST)?.trim()),
        None => in_protobuf(&base64(headers.get(BINARY)?.as_bytes())?),
    };
    found.filter(|share| share.is_finite() && *share >= 0.0).map(|share| share.min(1.0))
}

fn in_text(report: &str) -> Option<f64> {
    if let Some(json) = report.strip_prefix("JSON ") {
        let report: serde_json::Value = serde_json::from_str(json).ok()?;
        return first(|name, _| report.get(name)?.as_f64());
    }
    let pairs = report.strip_prefix("TEXT ").unwrap_or(report);
    first(|name, _| {
        let mut values = pairs.split(',').filter_map(|pair| pair.split_once(['=', ':']));
        values.find(|(key, _)| key.trim() == name)?.1.trim().parse().ok()
    })
}

/// The first that is there and is not zero, which in a protobuf is the same as not being there.
fn first(of: impl Fn(&str, u64) -> Option<f64>) -> Option<f64> {
    READ.iter().find_map(|(name, field)| of(name, *field).filter(|share| *share != 0.0))
}

fn in_protobuf(mut bytes: &[u8]) -> Option<f64> {
    let mut found = [None; READ.len()];
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        match tag & 7 {
            0 => drop(varint(&mut bytes)?),
            1 => {
                let (double, rest) = bytes.split_first_chunk::<8>()?;
                if let Some(place) = READ.iter().position(|(_, field)| *field == tag >> 3) {
                    found[place] = Some(f64::from_le_bytes(*double));
                }
                bytes = rest;
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                bytes = bytes.get(length..)?;
            }
            5 => bytes = bytes.get(4..)?,
            _ => return None,
        }
    }
    first(|name, _| READ.iter().position(|(known, _)| *known == name).and_then(|place| found[place]))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Either alphabet, with padding or without.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > LONGEST {
        return None;
    }
    let digits = text.iter().rev().skip_while(|byte| **byte == b'=').count();
    let mut bytes = Vec::with_capacity(digits * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.iter().take(digits) {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(digit)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff).try_into().unwrap_or_default());
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(name: HeaderName, value: &str) -> Option<f64> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        utilization(&headers)
    }

    #[test]
    fn reports_are_read_in_all_three_forms() {
        assert_eq!(said(TEXT, "TEXT cpu_utilization=0.3,mem_utilization=0.8"), Some(0.3));
        assert_eq!(said(TEXT, "cpu_utilization:0.3, application_utilization: 0.6"), Some(0.6));
        assert_eq!(said(TEXT, r#"JSON {"mem_utilization": 0.25, "rps_fractional": 7}"#), Some(0.25));
        // cpu 0.3; then rps 7, named_metrics {"a": ...}, application 0.6.
        assert_eq!(said(BINARY, "CTMzMzMzM9M/"), Some(0.3));
        assert_eq!(said(BINARY, "CTMzMzMzM9M_GAdCAgoASTMzMzMzM-M_"), Some(0.6));
    }

    #[test]
    fn what_cannot_be_read_says_nothing_and_more_than_all_is_all() {
        for odd in [
            "TEXT ",
            "TEXT cpu_utilization=x",
            "JSON {",
            "JSON []",
            "TEXT cpu_utilization=-1",
            "TEXT cpu_utilization=NaN",
        ] {
            assert_eq!(said(TEXT, odd), None, "{odd}");
        }
        assert_eq!(said(TEXT, "TEXT cpu_utilization=1.7"), Some(1.0));
        assert_eq!(said(BINARY, "C"), None);
        assert_eq!(said(BINARY, "!"), None);
        assert_eq!(utilization(&HeaderMap::new()), None);
    }

    proptest! {
        #[test]
        fn any_report_is_a_share_or_nothing(bytes in proptest::collection::vec(0x20_u8..0x7f, 0..80)) {
            let text = String::from_utf8(bytes).unwrap();
            for name in [TEXT, BINARY] {
                prop_assert!(said(name, &text).is_none_or(|share| (0.0..=1.0).contains(&share)));
            }
        }
    }
}
