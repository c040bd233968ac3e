//! The attribute that registers a guest test.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// Registers a function as a case of the guest suite.
///
/// A function that takes a `&Site` runs once for each device, a function without a
/// parameter runs once. The options are those of `register!` in `tests/guest/suite.rs`:
/// `#[case(alone, needs(Datagrams), covers(MULTICAST_JOIN))]`.
#[proc_macro_attribute]
pub fn case(options: TokenStream, function: TokenStream) -> TokenStream {
    let Some((name, scope)) = signature(function.clone()) else {
        return r#"compile_error!("`#[case]` registers a function");"#
            .parse()
            .unwrap_or_default();
    };
    let scope = Ident::new(scope, Span::call_site());
    let options = Group::new(Delimiter::Bracket, options);
    let arguments: TokenStream = [name, scope.into(), options.into()].into_iter().collect();
    let mut output = function;
    output.extend("crate::suite::register!".parse::<TokenStream>());
    output.extend([TokenTree::from(Group::new(Delimiter::Brace, arguments))]);
    output
}

/// The function's name, and how often it runs.
fn signature(function: TokenStream) -> Option<(TokenTree, &'static str)> {
    let mut tokens = function.into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn"))?;
    let name = tokens.next()?;
    let parameters = tokens.find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => Some(group),
        _ => None,
    })?;
    let scope = if parameters.stream().is_empty() {
        "Once"
    } else {
        "EachDevice"
    };
    Some((name, scope))
}
