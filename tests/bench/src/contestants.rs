//! How each contestant's program is had: found, compiled, installed.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Trouble;

/// Which program plays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// This one, in a role.
    Own(&'static str),
    /// The program beside it that counts what is allocated.
    Allocations(&'static str),
    /// One of `peers/*.c`.
    C(&'static str),
    Kazoo,
    Curator,
    /// The user's.
    Given(Vec<String>),
}

/// The package that is installed where none is.
const KAZOO: &str = "kazoo==2.11.0";

/// Makes each program once, below cargo's target directory.
pub struct Contestants {
    program: PathBuf,
    directory: PathBuf,
    ready: HashMap<Program, Result<Vec<OsString>, Trouble>>,
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

impl Contestants {
    pub fn new() -> Result<Contestants, Trouble> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let target = program.ancestors().nth(2).ok_or("this program lies in no directory")?;
        let directory = target.join("bench-peers");
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(Contestants { program, directory, ready: HashMap::new() })
    }

    /// Its program and the first of its arguments; or why there is none.
    pub fn command(&mut self, program: &Program) -> Result<Vec<OsString>, Trouble> {
        if let Some(ready) = self.ready.get(program) {
            return ready.clone();
        }
        let ready = match program {
            Program::Own(role) => Ok(vec![self.program.clone().into(), role.into()]),
            Program::Allocations(whose) => self.beside("allocations", whose),
            Program::C(name) => self.compile(name),
            Program::Kazoo => self.kazoo(),
            Program::Curator => curator(),
            Program::Given(words) => Ok(words.iter().map(OsString::from).collect()),
        };
        self.ready.insert(program.clone(), ready.clone());
        ready
    }

    fn beside(&self, name: &str, argument: &str) -> Result<Vec<OsString>, Trouble> {
        let program = self.program.with_file_name(name);
        if !program.exists() {
            return Err(format!("{} is missing: scripts/bench builds it", program.display()));
        }
        Ok(vec![program.into(), argument.into()])
    }

    /// Against the C client that is installed, or that of `ZOOKEEPER_DIR`.
    fn compile(&self, name: &str) -> Result<Vec<OsString>, Trouble> {
        let program = self.directory.join(name);
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-pthread", "-DTHREADED"]);
        if let Some(prefix) = std::env::var_os("ZOOKEEPER_DIR").map(PathBuf::from) {
            let library = prefix.join("lib");
            compiler.arg("-I").arg(prefix.join("include")).arg("-L").arg(&library);
            compiler.arg(format!("-Wl,-rpath,{}", library.display()));
        }
        compiler.arg(peers().join(name).with_extension("c")).arg("-lzookeeper_mt").arg("-o");
        succeed(compiler.arg(&program))?;
        Ok(vec![program.into()])
    }

    /// In a Python environment of its own.
    fn kazoo(&self) -> Result<Vec<OsString>, Trouble> {
        let environment = self.directory.join("python");
        let python = environment.join("bin/python");
        let has_kazoo = |python: &Path| {
            let mut import = Command::new(python);
            succeed(import.args(["-c", "import kazoo"])).is_ok()
        };
        if !has_kazoo(&python) {
            succeed(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
            let mut install = Command::new(&python);
            succeed(install.args(["-m", "pip", "install", "--quiet", KAZOO]))?;
        }
        Ok(vec![python.into(), peers().join("kazoo_lock.py").into()])
    }
}

/// With the jars that `CURATOR_JARS` names, by a Java that compiles what it runs.
fn curator() -> Result<Vec<OsString>, Trouble> {
    let jars = std::env::var_os("CURATOR_JARS");
    let jars = jars.filter(|jars| !jars.is_empty()).ok_or("CURATOR_JARS is not set")?;
    let home = std::env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java"));
    let java = home.filter(|java| java.exists()).unwrap_or_else(|| "java".into());
    let source = peers().join("CuratorLock.java");
    Ok(vec![java.into(), "-cp".into(), jars, source.into()])
}

/// # Errors
/// The last line that it said.
fn succeed(command: &mut Command) -> Result<(), Trouble> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}: {}", output.status, said.trim().lines().last().unwrap_or_default()))
}
