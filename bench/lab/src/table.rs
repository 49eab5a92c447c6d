//! Tables in Markdown, as `RESULTS.md` keeps them.

/// Adds a line.
pub fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Adds who took part in which version, and how many cores other programs kept busy `during` the measurement.
pub fn circumstances(text: &mut String, versions: &[(&str, String)], during: &str, others: f64) {
    let versions: Vec<String> = versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    line(text, &format!("{}.", versions.join(", ")));
    line(text, &format!("Cores that other programs kept busy during {during}: {others:.2}.\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circumstances_are_two_lines_and_a_gap() {
        let mut text = String::new();
        circumstances(&mut text, &[("a", "1.0".to_owned()), ("b", "2.1".to_owned())], "the run", 0.25);
        assert_eq!(text, "a 1.0, b 2.1.\nCores that other programs kept busy during the run: 0.25.\n\n");
    }
}
