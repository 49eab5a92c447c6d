//! Any policy with any table: what its sender is told of the table's problems is the same when every letter of the table is
//! another.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_policy::problem::{self, File, Problem};
use tidegate_policy::{Format, Source, callers_file, read};

// How both are spelt, and the policy and the table with a zero between.
fuzz_target!(|given: (u8, &[u8])| {
    let (spelling, texts) = given;
    let Some(between) = texts.iter().position(|byte| *byte == 0) else { return };
    let (policy, table) = (&texts[..between], &texts[between + 1..]);
    let format = if spelling & 1 == 0 { Format::Toml } else { Format::Yaml };
    let policy = Source { name: "sent", text: policy, format };
    let callers = Source { name: "callers", text: table, format };
    // A table that is not named is not read.
    let named = callers_file(policy).map(|_| callers);
    let problems = match read(policy, named) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    };
    let of_table = problems.into_iter().filter(|problem| problem.file == File::Callers);
    let told: Vec<Problem> = of_table.map(Problem::withheld).collect();
    let Ok(text) = std::str::from_utf8(table) else { return };
    let masked: Vec<u8> = text
        .char_indices()
        .flat_map(|(at, letter)| match letter {
            '\n' | '\r' => vec![text.as_bytes()[at]],
            // A mark at the beginning is not of the text.
            '\u{feff}' if at == 0 => letter.to_string().into_bytes(),
            // As long, so that everything stands where it stood.
            letter if letter.len_utf8() == 1 => vec![b'x'],
            letter if letter.len_utf8() == 2 => "ä".as_bytes().to_vec(),
            letter if letter.len_utf8() == 3 => "…".as_bytes().to_vec(),
            _ => "𝄞".as_bytes().to_vec(),
        })
        .collect();
    let masked = Source { name: "callers", text: &masked, format };
    assert_eq!(problem::render(policy, Some(callers), &told), problem::render(policy, Some(masked), &told),);
    assert_eq!(problem::json(policy, Some(callers), &told), problem::json(policy, Some(masked), &told));
});
