//! What a function could return instead of doing its work.

use syn::{GenericArgument, PathArguments, ReturnType, Type};

/// Expressions of the type, as far as its name says what they are.
pub fn instead_of(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".to_owned()],
        ReturnType::Type(_, of) => of_type(of),
    }
}

fn of_type(of: &Type) -> Vec<String> {
    let default = || vec!["Default::default()".to_owned()];
    match of {
        Type::Never(_) | Type::ImplTrait(_) => Vec::new(),
        Type::Tuple(tuple) if tuple.elems.is_empty() => vec!["()".to_owned()],
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return default() };
            let first = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => arguments.args.iter().find_map(inner),
                _ => None,
            };
            let inner = || first.map(of_type).unwrap_or_else(default);
            let wrapped = |in_what: &str| {
                inner().into_iter().map(|value| format!("{in_what}({value})")).collect::<Vec<_>>()
            };
            match last.ident.to_string().as_str() {
                "bool" => vec!["true".to_owned(), "false".to_owned()],
                "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize"
                | "c_int" => vec!["0".to_owned(), "1".to_owned()],
                "Option" => {
                    let mut values = vec!["None".to_owned()];
                    values.extend(wrapped("Some"));
                    values
                }
                "Result" => wrapped("Ok"),
                _ => default(),
            }
        }
        _ => default(),
    }
}

fn inner(argument: &GenericArgument) -> Option<&Type> {
    match argument {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    }
}
