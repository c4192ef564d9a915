//! Where in a source there is something to get wrong.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ExprBinary, Stmt};

use super::returns;
use crate::mutant::Mutant;
use crate::spot::{Shape, Spot};

/// All spots of a source; its bugs are added to `mutants`.
pub fn spots(file: &str, text: &str, syntax: &syn::File, mutants: &mut Vec<Mutant>) -> Vec<Spot> {
    let mut visitor = Visitor {
        file,
        text,
        mutants,
        spots: Vec::new(),
        scope: Vec::new(),
        function: None,
        seen: BTreeMap::new(),
    };
    visitor.visit_file(syntax);
    visitor.spots
}

pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        let what = attribute.meta.require_list().map(|list| list.tokens.to_string());
        let what = what.unwrap_or_default().replace(' ', "");
        let names = |name: &str| what.contains(name) && !what.contains(&format!("not({name})"));
        attribute.path().is_ident("test") || is_cfg && (names("test") || names("loom"))
    })
}

struct Visitor<'a> {
    file: &'a str,
    text: &'a str,
    mutants: &'a mut Vec<Mutant>,
    spots: Vec<Spot>,
    /// The types and modules around.
    scope: Vec<String>,
    /// The function around: its name, and a digest of its text.
    function: Option<(String, u64)>,
    /// How many bugs have this key, which then counts them.
    seen: BTreeMap<String, usize>,
}

impl Visitor<'_> {
    fn original(&self, of: &impl Spanned) -> &str {
        &self.text[of.span().byte_range()]
    }

    /// Notes a bug at a place, and gives its number.
    fn bug(&mut self, at: usize, what: String) -> Option<u32> {
        let (function, digest) = self.function.clone()?;
        let place = self.scope.iter().chain([&function]).cloned().collect::<Vec<_>>().join("::");
        let base = format!("{} {place}: {what} #{digest:08x}", self.file);
        let times = self.seen.entry(base.clone()).or_default();
        *times += 1;
        let key = if *times == 1 { base } else { format!("{base} ({times})") };
        let number = self.mutants.len() as u32 + 1;
        let line = self.text[..at].matches('\n').count() + 1;
        let file = self.file.to_owned();
        self.mutants.push(Mutant { number, key, file, line, place, what, found_by: Vec::new() });
        Some(number)
    }

    fn spot(&mut self, range: Range<usize>, shape: Shape, bugs: Vec<(String, String)>) {
        let numbered: Vec<_> = bugs
            .into_iter()
            .filter_map(|(what, bug)| Some((self.bug(range.start, what)?, bug)))
            .collect();
        if !numbered.is_empty() {
            self.spots.push(Spot { range, shape, bugs: numbered });
        }
    }

    fn body(
        &mut self,
        attributes: &[Attribute],
        signature: &syn::Signature,
        block: &syn::Block,
    ) -> bool {
        if is_for_tests(attributes) || signature.constness.is_some() {
            return false;
        }
        let range = signature.span().byte_range().start..block.span().byte_range().end;
        let mut hasher = DefaultHasher::new();
        // Blanks and comments may change: words may not.
        for word in self.text[range].split_whitespace() {
            word.hash(&mut hasher);
        }
        self.function = Some((signature.ident.to_string(), hasher.finish() & 0xffff_ffff));
        if !block.stmts.is_empty() {
            let at = block.brace_token.span.open().byte_range().end;
            let bugs = returns::instead_of(&signature.output).into_iter();
            let bugs = bugs.map(|value| (format!("returns {value}"), value)).collect();
            self.spot(at..at, Shape::Returned, bugs);
        }
        true
    }

    fn binary(&mut self, node: &ExprBinary) {
        let others: &[&str] = match node.op {
            BinOp::Eq(_) => &["!="],
            BinOp::Ne(_) => &["=="],
            BinOp::Lt(_) => &["<=", ">="],
            BinOp::Le(_) => &["<", ">"],
            BinOp::Gt(_) => &[">=", "<="],
            BinOp::Ge(_) => &[">", "<"],
            BinOp::And(_) => &["||"],
            BinOp::Or(_) => &["&&"],
            BinOp::Add(_) => &["-"],
            BinOp::Sub(_) => &["+"],
            BinOp::Mul(_) => &["/"],
            BinOp::Div(_) => &["*"],
            BinOp::Rem(_) => &["/"],
            BinOp::BitAnd(_) => &["|"],
            BinOp::BitOr(_) => &["&"],
            BinOp::Shl(_) => &[">>"],
            BinOp::Shr(_) => &["<<"],
            BinOp::AddAssign(_) => &["-="],
            BinOp::SubAssign(_) => &["+="],
            _ => &[],
        };
        let (left, right) = (self.original(&node.left), self.original(&node.right));
        let was = short(self.original(node));
        let bugs = others.iter().map(|other| {
            let bug = format!("{left} {other} {right}");
            (format!("`{was}` becomes {other}"), bug)
        });
        let bugs = bugs.collect();
        self.spot(node.span().byte_range(), Shape::Instead, bugs);
    }
}

/// One line of it, for people.
fn short(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_for_tests(&node.attrs) {
            self.scope.push(node.ident.to_string());
            visit::visit_item_mod(self, node);
            self.scope.pop();
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        let of = node.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        // What people read for debugging is not part of what is promised.
        if is_for_tests(&node.attrs) || of.is_some_and(|of| of.ident == "Debug") {
            return;
        }
        self.scope.push(short(self.original(&*node.self_ty)));
        visit::visit_item_impl(self, node);
        self.scope.pop();
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        let around = self.function.take();
        if self.body(&node.attrs, &node.sig, &node.block) {
            visit::visit_block(self, &node.block);
        }
        self.function = around;
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        if self.body(&node.attrs, &node.sig, &node.block) {
            visit::visit_block(self, &node.block);
        }
        self.function = None;
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        let Some(block) = &node.default else { return };
        if self.body(&node.attrs, &node.sig, block) {
            visit::visit_block(self, block);
        }
        self.function = None;
    }

    // Constants are made when the program is built.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_stmt(&mut self, node: &'ast Stmt) {
        let mut attributes: &[Attribute] = &[];
        if let Stmt::Local(local) = node {
            attributes = &local.attrs;
        }
        if let Stmt::Expr(expression, Some(_)) = node {
            let left_out = match expression {
                Expr::Call(call) => Some(&call.attrs),
                Expr::MethodCall(call) => Some(&call.attrs),
                Expr::Assign(assign) => Some(&assign.attrs),
                Expr::Await(awaited) => Some(&awaited.attrs),
                Expr::Try(tried) => Some(&tried.attrs),
                Expr::Binary(binary) => Some(&binary.attrs),
                _ => None,
            };
            if let Some(of) = left_out {
                attributes = of;
                if !is_for_tests(attributes) {
                    let what = format!("`{}` is left out", short(self.original(node)));
                    let range = node.span().byte_range();
                    self.spot(range, Shape::LeftOut, vec![(what, String::new())]);
                }
            }
        }
        if !is_for_tests(attributes) {
            visit::visit_stmt(self, node);
        }
    }

    fn visit_expr_binary(&mut self, node: &'ast ExprBinary) {
        self.binary(node);
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        if matches!(node.op, syn::UnOp::Not(_) | syn::UnOp::Neg(_)) {
            let what = format!("`{}` loses its sign", short(self.original(node)));
            let bug = self.original(&*node.expr).to_owned();
            self.spot(node.span().byte_range(), Shape::Instead, vec![(what, bug)]);
        }
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        let catches_all = |arm: &syn::Arm| matches!(arm.pat, syn::Pat::Wild(_));
        let has_rest = node.arms.iter().any(catches_all);
        for arm in &node.arms {
            if let syn::Pat::Guard(syn::PatGuard { pat, guard, .. }) = &arm.pat {
                let pattern = short(self.original(&**pat));
                let bugs = ["true", "false"].map(|value| {
                    (format!("the guard of `{pattern}` is {value}"), value.to_owned())
                });
                self.spot(guard.span().byte_range(), Shape::Instead, bugs.into());
            } else if has_rest && !catches_all(arm) {
                let pattern = short(self.original(&arm.pat));
                let at = arm.pat.span().byte_range().end;
                let what = format!("the arm `{pattern}` is missing");
                self.spot(at..at, Shape::ArmLeftOut, vec![(what, String::new())]);
            }
        }
        visit::visit_expr_match(self, node);
    }
}
