//! The headers under the strictest reading of every C and C++ that programs are written in, alone and
//! beside the C client's.

use std::process::Command;

use super::generate::path_of;

const STRICT: &[&str] = &["-Wall", "-Wextra", "-pedantic-errors", "-Werror", "-fsyntax-only"];
const C: &[&str] = &["c89", "c99", "c11", "c17"];
const CPP: &[&str] = &["c++98", "c++11", "c++17", "c++20"];
const ZOOKEEPER: &str = "#include <zookeeper/zookeeper.h>\n";
const ZKLOCK: &str = "#include <zklock.h>\n";
/// Uses what the header names, and the C client's names where that is there too.
const USE: &str = "
int use(const char *hosts, struct _zhandle *zh);
int use(const char *hosts, struct _zhandle *zh) {
    zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    zkl_client *client = NULL;
    zkl_lock *lock = NULL;
    int rc = zkl_client_connect(hosts, &options, &client);
    rc += zkl_client_adopt(zh, NULL, &client);
    rc += zkl_client_follow(client, zh);
    rc += zkl_lock_new(client, \"/lock\", NULL, &lock);
    {
        zkl_recipe_options open = ZKL_RECIPE_OPTIONS_INIT;
        zkl_counter *counter = NULL;
        rc += zkl_counter_new(client, \"/counter\", &open, &counter);
        zkl_counter_free(counter);
    }
    zkl_lock_free(lock);
    zkl_client_free(client);
    return rc == ZKL_TAKEN || ZKL_VERSION_NUMBER > 0;
}
";

/// Uses every function of `zklock.hpp`, so that all of its templates are compiled.
const USE_CPP: &str = "
#include <zklock.hpp>
template <typename F> int use_recipes(zklock::client &client, const zklock::lock &lock, F note) {
    int seen = 0;
    auto of_key = client.lock_of_key(\"/orders\", \"4711\");
    auto all = zklock::multi_lock::of({&lock, &*of_key});
    auto held = all->acquire(100);
    held = all->try_acquire();
    zklock::guard kept;
    auto keep = [&kept](zklock::result<zklock::guard> outcome) { kept = outcome.take(); };
    auto attempt = all->acquire_async(ZKL_FOREVER, keep);
    attempt = all->acquire_async(100);
    auto readable = attempt->fd();
    held = attempt->take();
    for (std::size_t i = 0; i < held->locks(); i++) seen += held->token_of(i) > 0 && *held->path_of(i) == '/';
    auto election = client.election(\"/election\");
    auto leads = election->campaign(100);
    attempt = election->campaign_async(ZKL_FOREVER, keep);
    attempt = election->campaign_async();
    auto watch = election->observe([&seen](zklock::result<zklock::contenders> leader) { seen += !leader->empty(); });
    auto leader = election->leader();
    for (const zkl_contender &one : *election->participants()) {
        if (!election->hand_over(*leads, one, 100)) seen += static_cast<int>(one.token);
        zklock::status begun = election->hand_over_async(*leads, one, 100, note);
        seen += begun.code();
    }
    auto counter = client.counter(\"/counter\");
    auto number = counter->value();
    number = counter->add(1);
    number = counter->get_and_add(-1);
    number = counter->compare_and_set(*number, 7);
    seen += counter->set(*number).code();
    auto queue = client.queue(\"/queue\");
    seen += queue->put(\"job\").code() + queue->put(\"urgent\", 0).code();
    char buffer[8];
    auto size = queue->peek(buffer, sizeof buffer);
    auto job = queue->take(100);
    zklock::delivery taken;
    attempt = queue->take_async(100, [&taken](zklock::result<zklock::delivery> outcome) { taken = outcome.take(); });
    seen += job->is_held() && job->token() > 0 && *job->path() && job->text().size() == *size && !job->empty();
    seen += job->data() != nullptr && job->size() > 0 && job->claim() != nullptr && job->get() && bool(taken);
    seen += job->done(100).code() + taken.done_async(100, note).code();
    auto group = client.group(\"/group\");
    auto me = group->join(\"10.0.0.7\");
    for (const zkl_member &one : *group->members()) seen += one.id[0] + static_cast<int>(one.len);
    auto members = group->watch([&seen](zklock::result<zklock::members> there) { seen += there && !there->empty(); });
    seen += me->is_member() && me->id() && me->path() && *watch && *members;
    seen += me->leave().code();
    auto latch = client.latch(\"/latch\");
    auto left = latch->set(2);
    left = latch->count_down();
    left = latch->left();
    seen += latch->wait(100).code() + static_cast<int>(*left);
    attempt = latch->wait_async(100, note);
    auto barrier = client.barrier(\"/barrier\");
    seen += barrier->set().code() + barrier->remove().code() + barrier->pass(100).code();
    attempt = barrier->pass_async(100, note);
    auto both = client.double_barrier(\"/both\", 2);
    auto in = both->enter(100);
    zklock::entered other;
    attempt = both->enter_async(100, [&other](zklock::result<zklock::entered> outcome) { other = outcome.take(); });
    seen += in->leave(100).code() + other.leave_async(100, note).code();
    return seen;
}
int use(const char *hosts, struct _zhandle *zh);
int use(const char *hosts, struct _zhandle *zh) {
    auto client = zklock::client::connect(hosts);
    if (!client) return client.error().code();
    auto store = zklock::client::to_store(\"local:\");
    if (!store->can(ZKL_CAN_BE_FAIR | ZKL_CAN_SHARE)) return store->store()[0];
    zklock::client adopted = zklock::client::adopt(zh).take();
    if (!adopted.follow(zh)) return 3;
    auto lock = adopted.lock(\"/lock\");
    auto guard = lock->try_acquire();
    if (!guard && guard.error().code() == ZKL_TAKEN) guard = lock->acquire(5000);
    int seen = 0;
    zklock::status told = guard->on_lost([&seen](int reason) { seen = reason; });
    auto fd = guard->fd();
    fd = guard->state_fd();
    if (guard->take_state() == ZKL_SUSPENDED) return 2;
    zklock::guard moved = guard.take();
    zklock::status waited = moved.wait_lost(0);
    if (moved.access() == ZKL_UPGRADEABLE && !moved.upgrade(5000)) return 4;
    if (!moved.downgrade(ZKL_READ)) return 5;
    zklock::status set = moved.set(\"/a\", \"b\", 1);
    zklock::guard kept;
    auto attempt = lock->acquire_async(ZKL_FOREVER, [&kept](zklock::result<zklock::guard> outcome) {
        if (outcome) kept = outcome.take();
    });
    zklock::status cancelled = attempt->cancel();
    attempt = lock->acquire_async();
    int ended = 0;
    auto note = [&ended](zklock::status outcome) { ended += outcome.code(); };
    set = moved.set_async(\"/a\", \"b\", 1, -1, note);
    told = lock->try_acquire_async([&kept](zklock::result<zklock::guard> outcome) { kept = outcome.take(); });
    for (const zkl_contender &one : *lock->contenders()) seen += static_cast<int>(one.pid);
    seen += zklock::shutdown().code();
    auto holder = lock->holder();
    for (auto one = holder->begin(); one != holder->end(); ++one) seen += *one->label;
    waited = lock->contenders_async(1, [&seen](zklock::result<zklock::contenders> found) {
        seen += found && !found->empty();
    });
    if (!holder->empty()) waited = lock->request_release(*holder->begin());
    if (!holder->empty()) waited = lock->break_hold(*holder->begin(), \"\", 100);
    told = moved.on_release_request([&seen](const char *reason) { seen += *reason; });
    auto limit = lock->limit();
    if (limit) waited = lock->set_limit(*limit + 1);
    auto reentrant = lock->reentrant();
    auto owner = reentrant->as_owner();
    if (owner) seen += owner->acquire()->holds();
    told = kept.release_async(0, note);
    seen += use_recipes(adopted, *lock, note);
    bool fine = told && fd && waited && set && cancelled && moved.is_held() && moved.token() > 0;
    fine = fine && adopted.session_id() != adopted.session_timeout_ms() && moved.lost_reason() == 0;
    zklock::status released = moved.release(100);
    zklock::status detached = client->detach();
    return fine && released && detached && !moved && client->state() + *moved.path() + *lock->path() ? 0 : 1;
}
";

fn compile(compiler: &str, options: &[&str], extension: &str, source: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(format!("use.{extension}"));
    std::fs::write(&file, source).unwrap();
    let output = Command::new(compiler)
        .args(options)
        .args(STRICT)
        .arg(format!("-I{}", path_of("include").display()))
        .arg(&file)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {options:?}:\n{source}\n{errors}");
}

fn everywhere(source: &str) {
    for standard in C {
        compile("cc", &[&format!("-std={standard}")], "c", source);
    }
    for standard in CPP {
        compile("c++", &[&format!("-std={standard}")], "cc", source);
    }
    compile("c++", &["-std=c++17", "-fno-exceptions", "-fno-rtti"], "cc", source);
}

#[test]
fn every_header_is_strict_c_and_cpp_of_every_standard() {
    let recipes = ["zoo_lock.h", "zoo_queue.h"].map(|name| format!("#include <{name}>\n"));
    let all = format!("{ZKLOCK}{}{}", recipes[0], recipes[1]);
    for source in [format!("{all}{all}{USE}"), recipes.concat(), recipes[1].clone()] {
        everywhere(&source);
        for chosen in ["ZKR_LOCK_RETURNS_ERRORS", "ZKR_LOCK_RETURNS_OWNER"] {
            everywhere(&format!("#define THREADED\n#define {chosen}\n{source}"));
        }
    }
}

#[test]
fn it_stands_alone() {
    everywhere(&format!("{ZKLOCK}{USE}"));
    everywhere(&format!("{ZKLOCK}{ZKLOCK}{USE}"));
}

#[test]
fn the_cpp_header_is_strict_from_cpp_11_on_and_needs_no_exceptions() {
    let beside = format!("{USE_CPP}{ZOOKEEPER}{ZKLOCK}");
    for source in [USE_CPP, &beside] {
        for standard in CPP.iter().filter(|standard| **standard != "c++98") {
            compile("c++", &[&format!("-std={standard}"), "-Wshadow"], "cc", source);
        }
        compile("c++", &["-std=c++17", "-fno-exceptions", "-fno-rtti"], "cc", source);
    }
}

#[test]
fn it_stands_before_the_header_of_the_c_client_and_after_it() {
    everywhere(&format!("{ZKLOCK}{ZOOKEEPER}{USE}"));
    everywhere(&format!("{ZOOKEEPER}{ZKLOCK}{USE}"));
}

/// The C blocks of a document: whole programs, or each within a function that has what it uses.
fn blocks_of(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path_of(document)).unwrap();
    let blocks = text.split("```c\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let function = |block: &str| match block.contains("int main(") {
        true => block.to_owned(),
        false => format!(
            "#include <stdio.h>\n{ZOOKEEPER}{ZKLOCK}#include <zoo_lock.h>\n\
             int use(zhandle_t *zh, zkl_lock *lock);\nint use(zhandle_t *zh, zkl_lock *lock) {{\n\
             (void)zh;\n(void)lock;\n{{\n{block}return rc;\n}}\n}}\n"
        ),
    };
    blocks.map(|(block, _)| function(block)).collect()
}

#[test]
fn the_readmes_example_compiles() {
    let examples = blocks_of("README.md");
    let example = examples.first().expect("a C example");
    assert!(example.contains("zkl_lock_acquire"), "{example}");
    compile("cc", &["-std=c99"], "c", example);
    compile("c++", &["-std=c++17"], "cc", example);
}

#[test]
fn the_c_blocks_of_the_documents_compile() {
    let documents = std::fs::read_dir(path_of("docs")).unwrap();
    let names = documents.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.ends_with(".md"));
    let blocks: Vec<String> = names.flat_map(|name| blocks_of(&format!("docs/{name}"))).collect();
    assert!(blocks.len() > 2, "{blocks:?}");
    for block in blocks {
        compile("cc", &["-std=c99"], "c", &block);
    }
}
