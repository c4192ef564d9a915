/*
 * The lease: until when may a client believe that its session lives? The code is src/client/lease.rs.
 *
 * A leader ends a session that it has not counted for the session timeout T. The client sees only answers. It concludes
 * from three of them:
 *   k, any request;
 *   m, a sync or a write, sent half a tick after the answer to k: it shows that a leader was running;
 *   w, a write, sent a little after the answer to m: it shows that this leader was one.
 * Then the client believes in the session until T - MARGIN after it sent k.
 *
 * The model has one such proof at a time. A lease is the best of many proofs, so it is right if each of them is.
 * The verifier chooses every delay and every fault. A message that is lost is one that takes for ever.
 *
 * Time goes in steps of T/20. Within a step, things happen in any order.
 * Each NO_... takes an assumption away. scripts/spec runs this file, and docs/specification.md explains it.
 */
#define T 20
#define TOLD_HALF_TICK 5 /* the client takes tickTime for T/2: Lease::set_terms */
#define LATE 2           /* LATENESS: a ping is late by less than that. T/50 in the code, T/10 here. */

#ifdef NO_HALF_TICK
#define HALF_TICK 10 /* the leader asks for reports half as often as the client assumes */
#else
#define HALF_TICK TOLD_HALF_TICK
#endif

#ifdef NO_MARGIN
#define MARGIN 0
#else
#define MARGIN 1 /* T/NOTICE */
#endif

#ifdef NO_CLOCK_RATE
#define CLOCK_LOSES 2
#else
#define CLOCK_LOSES 1 /* of 20 steps: five percent, where the code assumes one */
#endif

mtype = { PING, REPORT, REQUEST, ANSWER };
mtype:proof = { NOTHING, CONNECTING, K_SENT, K_ANSWERED, M_SENT, M_ANSWERED, W_SENT, BELIEVES };
mtype:place = { NOWHERE, TO_SERVER, AMONG_SERVERS, TO_CLIENT };
mtype:greeting = { NOT_SENT, SENT, ACCEPTED };

/* The leader. After an election, the first three are those of the successor. */
byte counted;     /* steps since it counted the session */
byte granted = T; /* the session timeout */
bool ended;       /* it has ended the session */
byte since_ping;
bool still;     /* its process stands still */
bool deposed;   /* a quorum follows a successor, and it does not know */
bool overtaken; /* it has answered a request while a ping was due */

/* The server that the client is connected to: the leader, or a follower. */
bool at_leader;
bool heard; /* the follower has heard of the session since its last report */
bool ping_in_flight;
chan from_leader = [2] of { mtype };
chan to_leader = [2] of { mtype };

/* The client. */
bool connected = true;
mtype:proof proof = NOTHING;
byte age;  /* steps since it sent k, by its clock */
byte wait; /* steps since the last answer, by its clock */
byte lost; /* steps that its clock has lost since it sent k */
mtype:place request = NOWHERE; /* at most one is in flight */
mtype:greeting handshake = NOT_SENT;

#define believes (proof == BELIEVES)

/* How long the client waits after an answer: between_pings, Answer::known. */
#define pause (proof == K_ANSWERED -> TOLD_HALF_TICK + LATE : (proof == M_ANSWERED -> LATE : 0))
#define may_send (connected && request == NOWHERE && wait == pause)

#ifdef NO_COMMIT
#define is_answered true /* w is a sync: a leader answers it alone, also after it was deposed */
#else
#define is_answered (proof != W_SENT || !deposed && !ended)
#endif

/* A ping that an answer has overtaken arrives within T/50, */
#ifdef NO_PROMPT_PING
#define is_prompt true
#else
#define is_prompt !(overtaken && ping_in_flight)
#endif

/* and its leader does not stand still again before that. */
#ifdef NO_PING_FIRST
#define may_stop true
#else
#define may_stop !overtaken
#endif

/* A leader that runs sends a ping in time. Pings that come earlier stand for a shorter tick. */
#define pings_in_time (still || deposed || at_leader || since_ping < HALF_TICK + LATE - 1 && is_prompt)

/* It rounds that up to a tick, or is slow: so it may end it at any time from then on. */
#define may_end (!ended && counted >= granted && (deposed || !still))

inline end_session() {
    ended = true;
    printf("T has passed since the session was counted: it ends, and another client acquires the lock\n")
}

/* As soon as the session has ended, another client may hold. */
inline check() {
    if
    :: ended && believes -> printf("Two clients believe that they hold the lock.\n"); assert(false)
    :: else -> skip
    fi
}

inline forget() { proof = NOTHING; age = 0; wait = 0; lost = 0 }

inline count() {
    if
    :: deposed -> printf("a leader that was deposed counts the session, for nothing\n")
    :: else -> counted = 0; printf("the leader counts the session\n")
    fi
}

inline servers_time() {
    counted = (counted < T -> counted + 1 : T);
    since_ping = (deposed || at_leader -> 0 : since_ping);
    since_ping = (since_ping < HALF_TICK || !still -> since_ping + 1 : since_ping)
}

inline clients_time() {
    if
    :: proof == NOTHING -> skip
    :: else ->
        age++;
        wait = (wait < pause -> wait + 1 : wait);
        if
        :: age < T - MARGIN -> skip
        :: believes -> printf("the client stops believing\n"); forget()
        :: else -> forget()
        fi
    fi
}

inline disconnect() {
    connected = false; request = NOWHERE; heard = false; overtaken = false; ping_in_flight = false;
    do
    :: nempty(from_leader) -> from_leader?_
    :: nempty(to_leader) -> to_leader?_
    :: empty(from_leader) && empty(to_leader) -> break
    od;
    if
    :: proof == K_SENT -> forget()
    :: proof == M_SENT -> proof = K_ANSWERED; wait = pause
    :: proof == W_SENT -> proof = M_ANSWERED; wait = pause
    :: else -> skip
    fi
}

/* The handshake has passed through the leader, which counts the session. */
inline accept(by_leader) {
    at_leader = by_leader; since_ping = 0; handshake = ACCEPTED; granted = T;
    printf("a server accepts the handshake: "); count()
}

active proctype lease() {
end:
    do
    /* ---- Time ---- */
    :: d_step { pings_in_time -> printf("TIME\n"); servers_time(); clients_time() }
    :: d_step { pings_in_time && proof != NOTHING && lost < CLOCK_LOSES ->
        printf("TIME\n"); printf("the client's clock loses a step\n"); lost++; servers_time() }

    /* ---- The leader ---- */
    :: d_step { !at_leader && !still && !deposed && since_ping > 0 ->
        since_ping = 0;
        if
        :: ping_in_flight -> skip /* its answer reports as much */
        :: else -> from_leader!PING; ping_in_flight = true; printf("the leader sends a ping\n")
        fi }
    :: d_step { !still && to_leader?[REPORT] -> to_leader?REPORT; printf("a report arrives: "); count() }
    :: d_step { !still && to_leader?[REQUEST] && nfull(from_leader) ->
        to_leader?REQUEST;
        if
        :: is_answered ->
            overtaken = (!ping_in_flight && since_ping >= HALF_TICK && !deposed -> true : overtaken);
            from_leader!ANSWER; printf("the leader answers\n")
        :: else -> skip
        fi }
    :: d_step { may_end && proof == W_SENT -> end_session() } /* its answer may be in flight */
    :: d_step { may_end && proof != W_SENT -> end_session(); check() } break

    /* ---- The client's server ---- */
    :: d_step { request == TO_SERVER && at_leader && !still ->
        printf("the leader reads the request: "); count();
        request = (is_answered -> TO_CLIENT : AMONG_SERVERS) }
    :: d_step { request == TO_SERVER && !at_leader && proof == K_SENT ->
        heard = true; request = TO_CLIENT; printf("the follower answers k alone\n") }
    :: d_step { request == TO_SERVER && !at_leader && proof != K_SENT && nfull(to_leader) ->
        heard = true; request = AMONG_SERVERS; to_leader!REQUEST; printf("the follower passes the request on\n") }
    :: d_step { from_leader?[PING] && nfull(to_leader) ->
        from_leader?PING; ping_in_flight = false; overtaken = false;
        if
        :: heard -> heard = false; to_leader!REPORT; printf("the follower receives the ping, and reports the session\n")
        :: else -> printf("the follower receives the ping, and has nothing to report\n")
        fi }
    :: d_step { from_leader?[ANSWER] -> from_leader?ANSWER; request = TO_CLIENT }

    /* ---- The client: Link::heartbeat, Lease::answered ---- */
    :: d_step { may_send && (proof == NOTHING || believes) ->
        forget(); proof = K_SENT; request = TO_SERVER; printf("the client sends k\n") }
    :: d_step { may_send && proof == K_ANSWERED ->
        proof = M_SENT; wait = 0; request = TO_SERVER; printf("the client sends m\n") }
    :: d_step { may_send && proof == M_ANSWERED ->
        proof = W_SENT; wait = 0; request = TO_SERVER; printf("the client sends w\n") }
    :: d_step { request == TO_CLIENT ->
        request = NOWHERE; wait = 0;
        if
        :: proof == K_SENT -> proof = K_ANSWERED; printf("the client reads the answer to k\n");
#ifdef NO_SUBMISSION
            age = 0; lost = 0
#endif
        :: proof == M_SENT -> proof = M_ANSWERED; printf("the client reads the answer to m\n")
        :: proof == W_SENT -> proof = BELIEVES; printf("the client reads the answer to w, and believes in its session\n")
        :: else -> skip
        fi }
    :: d_step { ended && proof != W_SENT -> check() } break

    /* ---- Connections: Lease::connected. A handshake can be k, and needs no m. ---- */
    :: d_step { connected -> disconnect(); printf("the connection breaks\n") }
    :: d_step { !connected && handshake == NOT_SENT -> handshake = SENT; printf("the client sends a handshake\n") }
    :: d_step { !connected && handshake == NOT_SENT ->
        handshake = SENT; forget(); proof = CONNECTING; printf("the client sends a handshake, which is k\n") }
    :: d_step { handshake == SENT && !still && (deposed || !ended) -> accept(true) }
    :: d_step { handshake == SENT && !still && (deposed || !ended) -> accept(false) }
    :: d_step { handshake == SENT && deposed && !ended -> deposed = false; still = false; accept(true) }
    :: d_step { handshake == SENT && deposed && !ended -> deposed = false; still = false; accept(false) }
#ifdef NO_FIXED_TIMEOUT
    :: d_step { handshake == SENT && !still && !deposed && !ended ->
        accept(false); granted = T / 2; printf("but it grants only half of the session timeout\n") }
#endif
    :: d_step { handshake == ACCEPTED && granted == T ->
        handshake = NOT_SENT; connected = true; printf("the client reads the answer to its handshake\n");
        if
        :: proof == CONNECTING -> proof = M_ANSWERED; wait = pause
        :: else -> skip
        fi }
    :: d_step { handshake == ACCEPTED && granted < T } break /* the client learns it: Lease::set_terms forgets all */
    :: d_step { handshake != NOT_SENT ->
        handshake = NOT_SENT; printf("the handshake is not answered\n");
        if
        :: proof == CONNECTING -> forget()
        :: else -> skip
        fi }

    /* ---- Faults ---- */
    :: d_step { !still && may_stop -> still = true; printf("the leader's process stands still\n") }
    :: d_step { still -> still = false; printf("the leader's process goes on\n") }
    :: d_step { !deposed && !ended -> deposed = true; counted = 0; overtaken = false;
        printf("a quorum elects another leader, which gives the session all of T; the old one does not know\n") }
    od
}
