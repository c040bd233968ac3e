//! Which functions instructions are in, by a file of callgrind.

use std::collections::HashMap;

use rdmacm_init::bench::Function;

/// The functions in a file, those with the most instructions first.
pub(crate) fn of(text: &str) -> Vec<Function> {
    let (mut names, mut sums) = (HashMap::new(), HashMap::new());
    let mut function = None;
    let mut is_of_callee = false;
    for line in text.lines() {
        if let Some(named) = line.strip_prefix("fn=").or(line.strip_prefix("cfn=")) {
            let id = name(named, &mut names);
            if line.starts_with("fn=") {
                function = Some(id);
            }
        } else if line.starts_with("calls=") {
            // The next line has the sum of the callee.
            is_of_callee = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.rsplit(' ').next();
            let cost = cost.and_then(|cost| cost.parse::<u64>().ok());
            if let (Some(function), Some(cost), false) = (function, cost, is_of_callee) {
                *sums.entry(function).or_default() += cost;
            }
            is_of_callee = false;
        }
    }
    let functions = sums.into_iter().map(|(id, instructions)| Function {
        name: names.get(id).copied().unwrap_or(id).to_owned(),
        instructions,
    });
    let mut functions: Vec<_> = functions.collect();
    functions.sort_by(|a, b| (b.instructions, &a.name).cmp(&(a.instructions, &b.name)));
    functions
}

/// The id of a function, whose name is there the first time only: `(12) name`.
fn name<'a>(text: &'a str, names: &mut HashMap<&'a str, &'a str>) -> &'a str {
    let (id, name) = text.split_once(' ').unwrap_or((text, ""));
    if !name.is_empty() {
        names.insert(id, name);
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_those_of_the_function_itself() {
        let text = "events: Ir\nfl=(1) send.rs\nfn=(1) post\n16 45\n+3 5\ncfn=(2) doorbell\n\
                    calls=2 20\n* 60\n-1 2\n\nfn=(2)\n20 60\nfn=(3) alone\n1 60\n";
        let functions = of(text);
        let found = functions
            .iter()
            .map(|one| (one.name.as_str(), one.instructions));
        let expected = [("alone", 60), ("doorbell", 60), ("post", 52)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
