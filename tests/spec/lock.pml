/*
 * The lock: claims in a queue, lost replies, announced releases, tokens. The code is src/zookeeper/acquire/, claim/ and
 * shortcuts/.
 *
 * A claim is an ephemeral sequential znode; here it is its number. The lowest holds. A waiter watches the nearest claim
 * before its own. The servers execute transactions in one order. Each client hears of them in that order, some time
 * later; `seen` is the last. What it reads is as old as that: servers lag, and replies take time.
 *
 * Checked: two beliefs never overlap, tokens grow, and everybody is served. Each client acquires once, and faults are
 * counted, so each run ends (the verifier looks for cycles, too). At the end, all clients are done and no claim is left.
 *
 * "Connected" means here that the lease proves the session (lease.pml), so that the client may hold.
 * Each NO_... takes an assumption away. scripts/spec runs this file, and docs/specification.md explains it.
 */
#define N 3      /* clients */
#define CLAIMS 8 /* more than are ever created: see create */
#define NONE 15

#ifndef CUTS
#define CUTS 1 /* connections that break */
#endif
#ifndef DROPS
#define DROPS 1 /* acquires that are dropped, or time out */
#endif
#ifndef DELETIONS
#define DELETIONS 1 /* claims of waiters that somebody deletes by hand */
#endif
#ifndef WRITES
#define WRITES 0 /* claims that somebody else writes to */
#endif

mtype:state = { IDLE, SENT, PLACED, WAITING, HOLDS, DONE };
mtype:event = { NO_EVENT, CHANGED, DELETED };

/* The servers. A transaction is its place in their order; 0 is none. */
byte last = 1;
unsigned next : 4; /* the number of the next claim */
typedef Claim {
    byte created;   /* by which transaction: its czxid */
    byte gone;      /* by which transaction it was deleted */
    byte written;   /* by which transaction somebody else wrote to it */
    bool announces; /* its data say that its release will be announced: announced::will_be */
    bool announced; /* it was deleted by the transaction {set, delete} */
    unsigned owner : 2
};
Claim claims[CLAIMS];
unsigned token : 4; /* one more than the largest that was given out: numbers grow as czxids do */

/* The clients. */
typedef Client {
    mtype:state at;
    bool connected;
    byte seen;
    unsigned claim : 4;   /* our claim; while SENT, what the servers have made of our create */
    bool in_flight;       /* the create was not executed yet */
    bool unanswered;      /* its reply was lost: State::Sent without a reply */
    bool cancelled;       /* the acquire was dropped before the reply came: clean_up */
    bool young;           /* the claim is less than 100 ms old: Claim::young_until */
    bool own_watch;       /* it is watched: OwnWatch::is_intact */
    bool own_deleted;     /* and was reported as deleted: Attempt::is_own_deleted */
    unsigned behind : 4;  /* the claim before ours, which is watched: Behind */
    bool is_only;         /* no other is before ours */
    bool is_announced;    /* it will announce its release */
    bool same_connection; /* the connection is the one on which that was read */
    mtype:event event;
    unsigned leaving : 4; /* the claim that is being deleted until it is gone: guaranteed_delete.rs */
    bool releasing;       /* by the first try of a release, so it may be announced */
    bool has_claimed
};
Client clients[N];
byte cuts = CUTS;
byte drops = DROPS;
byte deletions = DELETIONS;

#define me clients[c]
#define own claims[me.claim]
#define ahead claims[me.behind]
#define is_there(s) (claims[s].created && !claims[s].gone)
#define sees(s) (claims[s].created && claims[s].created <= me.seen && (!claims[s].gone || claims[s].gone > me.seen))
#define is_new(number) (number > me.seen)
#define ME 'A' + c

/* ---- The assumptions ---- */
#ifdef NO_LEASE
#define may_lose_its_session true
#else
#define may_lose_its_session (me.at != HOLDS) /* the client has stopped believing before */
#endif

#ifdef NO_OWN_CLAIM
#define may_be_deleted true
#else
#define may_be_deleted !me.young
#endif

#ifdef NO_SAME_CONNECTION
#define is_believed_later true
#else
#define is_believed_later false
#endif

#ifdef NO_SOLE_WRITER
#define may_be_written true
byte writes = 1;
#else
#define may_be_written !own.announces /* the servers enforce its ACL: announced::is_acl_enforced */
byte writes = WRITES;
#endif

#ifdef NO_LISTING
#define hands_over true /* any event counts as a release */
#else
/* Behind::after */
#define hands_over (me.is_announced -> me.event == CHANGED : me.is_only && me.event == DELETED)
#endif

#ifdef NO_LOOKUP
#define looks false
#else
#define looks true
#endif

/* ---- The clients ---- */
inline forget_claim() {
    me.claim = NONE; me.in_flight = false; me.unanswered = false; me.young = false; me.own_watch = false;
    me.own_deleted = false; forget_behind()
}

inline forget_behind() {
    me.behind = NONE; me.is_only = false; me.is_announced = false; me.same_connection = false; me.event = NO_EVENT
}

#define another_holds (clients[0].at == HOLDS && c != 0 || clients[1].at == HOLDS && c != 1 || clients[2].at == HOLDS && c != 2)
inline hold() {
    me.at = HOLDS; printf("%c believes that it holds\n", ME);
    if
    :: another_holds -> printf("Two clients believe that they hold the lock.\n"); assert(false)
    :: me.claim < token -> printf("Its token is smaller than one that was given out before.\n"); assert(false)
    :: else -> token = me.claim + 1
    fi;
    tidy()
}

/* The end of an acquire or a hold deletes the claim: Claim::drop, Tenure::submit_release. */
inline let_go(by_release) {
    if
    :: is_there(me.claim) -> me.leaving = me.claim; me.releasing = by_release && own.announces
    :: else -> skip
    fi;
    forget_claim(); me.at = DONE;
    tidy()
}

/* The create has succeeded, as its reply or a look-up says: Claim::confirm, Search::placed. */
inline placed() {
    me.unanswered = false;
    if
    :: me.cancelled -> let_go(false)
    :: else -> me.at = PLACED; tidy()
    fi
}

inline without_a_claim() { forget_claim(); me.at = (me.cancelled -> DONE : IDLE); tidy() }

/* Reads who is before us, and watches the nearest: stand and wait_behind in acquire/queue.rs. */
inline list() {
    s = 0; nearest = NONE; number = 0;
    do
    :: s < me.claim ->
        if
        :: sees(s) -> nearest = s; number++
        :: else -> skip
        fi;
        s++
    :: else -> break
    od;
    if
    :: me.own_deleted || !sees(me.claim) -> printf("%c finds its claim deleted\n", ME); without_a_claim()
    :: else ->
        if
        :: nearest == NONE -> printf("%c lists the claims: its own is the first\n", ME); hold()
        :: else ->
            me.at = WAITING; me.behind = nearest; me.is_only = (number == 1); me.same_connection = true;
            me.is_announced = ahead.announces && (!ahead.written || is_new(ahead.written));
            printf("%c lists the claims, and watches claim %d\n", ME, nearest);
            tidy()
        fi
    fi;
    s = 0; nearest = 0; number = 0
}

/* A waiter hears of the next transaction that it watches for. */
#define has_event (me.own_watch && is_new(own.gone) || me.event == NO_EVENT && (is_new(ahead.gone) || is_new(ahead.written)))
inline hear() {
    do
    :: me.seen++;
        if
        :: me.own_watch && own.gone == me.seen ->
            me.own_watch = false; me.own_deleted = true; printf("%c hears that its own claim was deleted\n", ME);
            break
        :: me.event == NO_EVENT && ahead.gone == me.seen && !ahead.announced ->
            me.event = DELETED; printf("%c hears that claim %d was deleted\n", ME, me.behind);
            break
        :: me.event == NO_EVENT && (ahead.gone == me.seen || ahead.written == me.seen) ->
            me.event = CHANGED; printf("%c hears that claim %d was written to\n", ME, me.behind);
            break
        :: else -> skip
        fi
    od;
    tidy()
}

/* The C client sets its watches again, and an event that was missed comes. Of a znode that is gone, it is the deletion. */
inline connect() {
    me.connected = true; printf("%c is connected again\n", ME);
    me.in_flight = false; me.releasing = false; /* the servers refuse what still comes from the connection before */
    if
    :: me.at == WAITING && me.event == NO_EVENT && ahead.gone && !is_new(ahead.gone) ->
        me.event = DELETED; printf("%c hears that claim %d was deleted\n", ME, me.behind)
    :: else -> skip
    fi;
    tidy()
}

/* ---- The servers ---- */
/* A is the first whose create is executed, and B the second. Otherwise they would have other names. */
#define is_named_so (c == 0 || clients[c - 1].has_claimed || clients[c - 1].at == DONE)
inline create(will_be_announced) {
    last++;
    me.claim = next; own.owner = c; own.created = last; own.announces = will_be_announced;
    me.in_flight = false; me.has_claimed = true; me.seen = last;
    printf("the servers create claim %d for %c\n", next, ME);
    next++; assert(next < CLAIMS);
    tidy()
}

inline delete(is_said) {
    last++;
    claims[me.leaving].gone = last; claims[me.leaving].announced = is_said;
    printf("the servers delete claim %d of %c\n", me.leaving, ME);
    me.leaving = NONE; me.releasing = false;
    tidy()
}

/* The client hears of it when it connects, and goes on in another session. */
inline end_session() {
    last++; printf("the servers end the session of %c\n", ME);
    s = 0;
    do
    :: s < CLAIMS -> claims[s].gone = (is_there(s) && claims[s].owner == c -> last : claims[s].gone); s++
    :: else -> break
    od;
    s = 0; me.leaving = NONE; me.releasing = false;
    if
    :: me.at == HOLDS -> skip
    :: else -> me.at = (me.at == DONE || me.cancelled -> DONE : IDLE); forget_claim()
    fi;
    tidy()
}

/* ---- To have fewer states ---- */
/* Only the order of those transactions matters that somebody has still to hear of. All others get the number 1. */
#define news_of(c, s) (claims[s].gone > clients[c].seen || claims[s].written > clients[c].seen)
#define listens(c) (clients[c].at == PLACED || clients[c].at == SENT && clients[c].claim != NONE || \
    clients[c].at == WAITING && (clients[c].event != NO_EVENT || news_of(c, clients[c].behind) || news_of(c, clients[c].claim)))
#define has_heard(c) (listens(c) -> clients[c].seen : last)
#define smaller(a, b) (a < b -> a : b)
#define renumbered(number) (number > all_heard -> number - all_heard + 1 : (number > 0 -> 1 : 0))
inline tidy() {
    clients[0].seen = has_heard(0); clients[1].seen = has_heard(1); clients[2].seen = has_heard(2);
    all_heard = smaller(clients[0].seen, clients[1].seen); all_heard = smaller(all_heard, clients[2].seen);
    i = 0;
    do
    :: i < CLAIMS ->
        claims[i].created = renumbered(claims[i].created);
        claims[i].written = renumbered(claims[i].written);
        claims[i].gone = renumbered(claims[i].gone);
        if
        :: claims[i].gone == 1 ->
            claims[i].owner = 0; claims[i].written = 0; claims[i].announces = false; claims[i].announced = false
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < N ->
        clients[i].seen = renumbered(clients[i].seen);
        if
        :: clients[i].at == DONE && clients[i].leaving == NONE -> clients[i].connected = false; clients[i].cancelled = false
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    last = renumbered(last);
    i = 0; all_heard = 0
}

/* ---- What can happen to a client ---- */
#define is_active (me.at != IDLE && (me.at != DONE || me.leaving != NONE))

proctype client(byte c) {
    byte s, nearest, number, i, all_heard;
end:
    do
    /* The acquire: contend in acquire/mod.rs. */
    :: d_step { me.connected && me.at == IDLE -> /* make in claiming.rs */
        me.at = SENT; me.in_flight = true; me.young = true; printf("%c sends a create\n", ME) }
    :: d_step { me.connected && me.at == SENT && !me.unanswered && me.claim != NONE ->
        printf("%c reads the reply to its create\n", ME); placed() }
    :: d_step { me.connected && me.at == SENT && me.unanswered && !me.in_flight -> /* Claim::reconcile; it syncs first */
        me.seen = last;
        if
        :: looks && me.claim != NONE && sees(me.claim) -> printf("%c looks for its claim, and finds it\n", ME); placed()
        :: else -> printf("%c knows of no claim of its own\n", ME); without_a_claim()
        fi }
#ifdef NO_SYNC
    :: d_step { me.connected && me.at == SENT && me.unanswered && !me.in_flight && me.claim != NONE ->
        printf("%c looks for its claim on a server that lags behind, and finds none\n", ME); without_a_claim() }
#endif
    :: d_step { me.connected && me.at == PLACED && me.seen < last -> me.seen++; tidy() }
    :: d_step { me.connected && me.at == PLACED -> list() }
    :: d_step { me.connected && me.at == WAITING && has_event -> hear() }
    :: d_step { me.connected && me.at == WAITING && me.event != NO_EVENT -> /* Attempt::follows */
        if
        :: hands_over && me.same_connection && (me.young || me.own_watch) -> hold()
        :: else -> me.at = PLACED; forget_behind(); tidy()
        fi }
    :: d_step { me.at == WAITING && me.young && deletions > 0 -> me.young = false; printf("%c has waited for 100 ms\n", ME) }
    :: d_step { me.connected && me.at == WAITING && !me.young && !me.own_watch && !me.own_deleted -> /* watch_own */
        me.own_watch = sees(me.claim); me.own_deleted = !me.own_watch; printf("%c watches its own claim\n", ME) }
    :: d_step { me.connected && me.own_watch && own.gone && !is_new(own.gone) -> /* only after another connection */
        me.own_watch = false; me.own_deleted = true; printf("%c hears that its own claim was deleted\n", ME) }
    :: d_step { me.at == HOLDS -> printf("%c releases\n", ME); let_go(true) }

    /* The servers. */
    :: d_step { me.in_flight && is_named_so -> create(false) }
    :: d_step { me.in_flight && is_named_so -> create(true) }
    :: d_step { me.leaving != NONE && me.releasing -> delete(true) }
    :: d_step { me.leaving != NONE && !me.releasing && me.connected -> delete(false) }
    :: d_step { !me.connected && is_active && may_lose_its_session -> end_session() }

    /* Its connection. */
    :: d_step { me.connected && is_active && cuts > 0 ->
        cuts--; me.connected = false; me.unanswered = (me.at == SENT);
        me.same_connection = me.same_connection && is_believed_later; me.own_watch = me.own_watch && is_believed_later;
#ifdef NO_REPEAT
        me.leaving = NONE; me.releasing = false;
#endif
        printf("%c loses its connection, and the replies that it waits for\n", ME) }
    :: d_step { !me.connected && me.at == HOLDS -> printf("%c believes no longer: its lease is over\n", ME); let_go(false) }
    :: d_step { !me.connected && (me.at == IDLE || is_active) -> connect() }
    :: d_step { !me.connected && me.at == WAITING && me.seen < last -> me.seen = last; connect() }

    /* Other people. */
    :: d_step { drops > 0 && (me.at == SENT || me.at == PLACED || me.at == WAITING) && !me.cancelled ->
        drops--; printf("%c drops its acquire\n", ME);
        if
        :: me.at == SENT -> me.cancelled = true
        :: else -> let_go(false)
        fi }
    :: d_step { deletions > 0 && me.at == WAITING && may_be_deleted && is_there(me.claim) && is_there(me.behind) ->
        deletions--; last++; own.gone = last; printf("somebody deletes claim %d of %c by hand\n", me.claim, ME); tidy() }
    :: d_step { writes > 0 && me.claim != NONE && may_be_written && is_there(me.claim) && !own.written ->
        writes--; last++; own.written = last; printf("somebody writes to claim %d of %c\n", me.claim, ME); tidy() }
    od
}

/* When nothing more can happen, everybody was served, and no claim is left. */
proctype judge() {
    byte c;
    timeout ->
    for (c : 0 .. N - 1) {
        if
        :: me.at != DONE -> printf("%c waits for ever.\n", ME); assert(false)
        :: else -> skip
        fi
    }
    for (c : 0 .. CLAIMS - 1) {
        if
        :: is_there(c) -> printf("Claim %d stays, and blocks all that come.\n", c); assert(false)
        :: else -> skip
        fi
    }
}

init {
    byte c;
    atomic {
        run judge();
        for (c : 0 .. N - 1) {
            me.at = IDLE; me.event = NO_EVENT; me.claim = NONE; me.behind = NONE; me.leaving = NONE; me.connected = true
        }
        run client(2); run client(1); run client(0)
    }
}
