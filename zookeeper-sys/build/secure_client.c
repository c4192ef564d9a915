/* Compiled in the place of the C client's zookeeper.c where TLS or SASL is asked for. It contains that file, unchanged,
 * and answers for what its TLS leaves out:
 *
 * - A handshake ends: by two thirds of the session timeout, or when the handle is closed. Upstream's waits for ever on a
 *   server that says nothing, and zookeeper_close waits with it. An attempt to connect ends as well, after which upstream
 *   would keep a processor busy.
 * - The server's certificate has to be signed by the given authorities. Upstream takes all those of the system too.
 * - Certificates that the authorities have revoked are refused, where the file of the authorities has their lists.
 * - A client without a certificate of its own may connect. Upstream requires one.
 * - Host names are verified, if that is asked for. Upstream verifies none.
 * - What TLS has decrypted already is processed. Upstream waits for the next byte of the server's first.
 * - A socket may have any number. Upstream waits for a handshake by select, which writes beyond its sets from 1024 on.
 * - A request that finds the socket full is sent later. Upstream takes that for a lost connection.
 * - A key without its password is an error. Upstream asks on the terminal.
 * - One handle may have both TLS and SASL, a log of its own, and any characters in the names of its files.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <zookeeper.h>

#include "zk_adaptor.h"
#ifdef HAVE_CYRUS_SASL_H
#include "zk_sasl.h"
#endif

/* TLS by these files and this password, none of which is NULL. `cert` and `key` are empty where the client has no
 * certificate. */
typedef struct zookeeper_sys_tls {
    const char *ca;
    const char *cert;
    const char *key;
    const char *password;
    int verify_host;
} zookeeper_sys_tls_t;

#ifdef HAVE_OPENSSL_H
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* The first byte of what a handle keeps of its certificates. */
#define VERIFY_HOST 'v'

static int limited_connect(zhandle_t *zh, int fd, const struct sockaddr *address, socklen_t length);
static int load_authorities(SSL_CTX *context, const char *file);
static int load_certificate(SSL_CTX *context, const char *file);
static int load_key(SSL_CTX *context, const char *file);
static int check_key(const SSL_CTX *context);
static int set_fd(zhandle_t *zh, SSL *ssl, int fd);
static int handshake(zhandle_t *zh, SSL *ssl);
static int wait_for(int fd, const fd_set *reads, const fd_set *writes, const struct timeval *limit);
static int process_once(zhandle_t *zh, int events);

#if OPENSSL_VERSION_NUMBER >= 0x30000000L && !defined(FIPS_mode)
#define FIPS_mode() EVP_default_properties_is_fips_enabled(NULL)
#endif
#define connect(fd, address, length) limited_connect(zh, fd, address, length)
#define SSL_set_fd(ssl, fd) set_fd(zh, ssl, fd)
#define SSL_connect(ssl) handshake(zh, ssl)
#define SSL_CTX_load_verify_locations(context, file, directory) load_authorities(context, file)
#define SSL_CTX_set_default_verify_paths(context) 1
#define SSL_CTX_use_certificate_chain_file(context, file) load_certificate(context, file)
#define SSL_CTX_use_PrivateKey_file(context, file, form) load_key(context, file)
#define SSL_CTX_check_private_key(context) check_key(context)
#undef SSL_CTX_set_mode
#define SSL_CTX_set_mode(context, mode)                                                                       \
    SSL_CTX_ctrl((context), SSL_CTRL_MODE,                                                                    \
                 (mode) | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL)
/* Each set is a flag: there is one socket to wait for. */
#undef FD_ZERO
#undef FD_SET
#undef FD_CLR
#define FD_ZERO(set) (*(char *)(set) = 0)
#define FD_SET(fd, set) (*(char *)(set) = 1)
#define FD_CLR(fd, set) (*(char *)(set) = 0)
#define select(count, reads, writes, errors, limit) wait_for((count)-1, reads, writes, limit)
#define zookeeper_process process_once
#endif

#include "zookeeper.c"

#ifdef HAVE_OPENSSL_H
#undef connect
#undef zookeeper_process

/* For how many milliseconds the present attempt to connect has gone on. */
static int waited(zhandle_t *zh)
{
    struct timeval now;
    get_system_time(&now);
    return calculate_interval(&zh->last_recv, &now);
}

static int limited_connect(zhandle_t *zh, int fd, const struct sockaddr *address, socklen_t length)
{
#ifdef TCP_SYNCNT
    if (zh->fd->cert) {
        /* One repetition takes three seconds in all, each further one twice as long as that before it. */
        int repetitions = 1;
        while (((2 << (repetitions + 1)) - 1) * 1000 <= zh->recv_timeout / 3 * 2) {
            repetitions++;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &repetitions, sizeof(repetitions));
    }
#else
    (void)zh;
#endif
    return connect(fd, address, length);
}

static int same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family) {
        return 0;
    }
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *one = (const void *)a, *other = (const void *)b;
        return one->sin_port == other->sin_port && one->sin_addr.s_addr == other->sin_addr.s_addr;
    }
    if (a->sa_family == AF_INET6) {
        const struct sockaddr_in6 *one = (const void *)a, *other = (const void *)b;
        return one->sin6_port == other->sin6_port &&
               memcmp(&one->sin6_addr, &other->sin6_addr, sizeof(one->sin6_addr)) == 0;
    }
    return 0;
}

static int resolves_to(const char *name, const char *port, int flags, const struct sockaddr *address)
{
    struct addrinfo hints, *found = NULL, *next;
    int same = 0;
    memset(&hints, 0, sizeof(hints));
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    if (getaddrinfo(name, port, &hints, &found) != 0) {
        return 0;
    }
    for (next = found; next && !same; next = next->ai_next) {
        same = same_address(next->ai_addr, address);
    }
    freeaddrinfo(found);
    return same;
}

/* The certificate has to be for one of those names in the list of hosts that lead to this address. */
static int expect_host(zhandle_t *zh, SSL *ssl)
{
    const struct sockaddr *address = (const struct sockaddr *)&zh->addr_cur;
    char *hosts, *host, *rest = NULL;
    int names = 0, numbers = 0, ok = 1;

    lock_reconfig(zh);
    hosts = strdup(zh->hostname);
    unlock_reconfig(zh);
    if (!hosts) {
        return 0;
    }
    for (host = strtok_r(hosts, ",", &rest); host && ok && !numbers; host = strtok_r(NULL, ",", &rest)) {
        char *port = strrchr(host, ':');
        if (!port) {
            continue;
        }
        *port++ = '\0';
        if (resolves_to(host, port, AI_NUMERICHOST, address)) {
            if (!names) {
                numbers = 1;
                ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
            }
        } else if (resolves_to(host, port, 0, address)) {
            ok = names ? SSL_add1_host(ssl, host) : SSL_set1_host(ssl, host);
            names++;
        }
    }
    free(hosts);
    if (!names && !numbers) {
        /* The name leads elsewhere by now: nothing that a certificate could be for. */
        ok = SSL_set1_host(ssl, "unknown.invalid");
    }
    return ok;
}

static int load_authorities(SSL_CTX *context, const char *file)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    STACK_OF(X509_OBJECT) *objects;
    int i;

    if ((SSL_CTX_load_verify_locations)(context, file, NULL) != 1) {
        return 0;
    }
    objects = X509_STORE_get0_objects(store);
    for (i = 0; i < sk_X509_OBJECT_num(objects); i++) {
        if (X509_OBJECT_get_type(sk_X509_OBJECT_value(objects, i)) == X509_LU_CRL) {
            return X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
        }
    }
    return 1;
}

static int load_certificate(SSL_CTX *context, const char *file)
{
    return *file ? (SSL_CTX_use_certificate_chain_file)(context, file) : 1;
}

static int load_key(SSL_CTX *context, const char *file)
{
    return *file ? (SSL_CTX_use_PrivateKey_file)(context, file, SSL_FILETYPE_PEM) : 1;
}

static int check_key(const SSL_CTX *context)
{
    return SSL_CTX_get0_certificate(context) ? (SSL_CTX_check_private_key)(context) : 1;
}

static int set_fd(zhandle_t *zh, SSL *ssl, int fd)
{
    if (zh->fd->cert->certstr[0] == VERIFY_HOST && !expect_host(zh, ssl)) {
        /* Its result is not looked at: without a socket the handshake fails. */
        LOG_ERROR(LOGCALLBACK(zh), "no memory to verify a host name");
        return 0;
    }
    return (SSL_set_fd)(ssl, fd);
}

static int handshake(zhandle_t *zh, SSL *ssl)
{
    int rc, why, fd = SSL_get_fd(ssl), late = waited(zh) > zh->recv_timeout / 3 * 2;

    if (fd >= 0 && (late || zh->close_requested)) {
        shutdown(fd, SHUT_RDWR);
    }
    ERR_clear_error();
    rc = (SSL_connect)(ssl);
    why = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl, rc);
    if (why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
        long verified = SSL_get_verify_result(ssl);
        unsigned long error = ERR_peek_error();
        const char *reason = late ? "the server does not answer"
                             : verified != X509_V_OK ? X509_verify_cert_error_string(verified)
                             : error ? ERR_reason_error_string(error)
                                     : "the connection is closed";
        LOG_ERROR(LOGCALLBACK(zh), "TLS handshake with %s: %s", format_endpoint_info(&zh->addr_cur),
                  reason ? reason : "unknown error");
    }
    return rc;
}

static int wait_for(int fd, const fd_set *reads, const fd_set *writes, const struct timeval *limit)
{
    struct pollfd waited_for = {fd, 0, 0};
    if (*(const char *)reads) {
        waited_for.events |= POLLIN;
    }
    if (*(const char *)writes) {
        waited_for.events |= POLLOUT;
    }
    return poll(&waited_for, 1, (int)(limit->tv_sec * 1000 + limit->tv_usec / 1000));
}

int zookeeper_process(zhandle_t *zh, int events)
{
    int rc = process_once(zh, events);
    if (rc == ZSSLCONNECTIONERROR && zh->fd->sock != -1) {
        /* A file of certificates that can't be used, for which upstream keeps the connection. */
        zh->fd->ssl_ctx = NULL;
        return handle_socket_error_msg(zh, __LINE__, __func__, ZSSLCONNECTIONERROR, "no TLS context");
    }
    while (rc == ZOK && zh->fd->sock != -1 && zh->fd->ssl_sock && SSL_pending(zh->fd->ssl_sock) > 0) {
        rc = process_once(zh, ZOOKEEPER_READ);
    }
    return rc;
}

/* One after the other behind their mark, in memory that the handle frees. */
static int keep(zcert_t *kept, const zookeeper_sys_tls_t *tls)
{
    size_t ca = strlen(tls->ca) + 1, cert = strlen(tls->cert) + 1, key = strlen(tls->key) + 1;
    kept->certstr = malloc(1 + ca + cert + key + strlen(tls->password) + 1);
    if (!kept->certstr) {
        return 0;
    }
    kept->certstr[0] = tls->verify_host ? VERIFY_HOST : '-';
    kept->ca = strcpy(kept->certstr + 1, tls->ca);
    kept->cert = strcpy(kept->ca + ca, tls->cert);
    kept->key = strcpy(kept->cert + cert, tls->key);
    kept->passwd = strcpy(kept->key + key, tls->password);
    return 1;
}
#endif

/* As zookeeper_init2, with TLS if `tls` is not NULL, and SASL if `sasl_params` is not. */
zhandle_t *zookeeper_sys_init_secure(const char *host, watcher_fn watcher, int recv_timeout,
                                     const clientid_t *clientid, void *context, int flags,
                                     log_callback_fn log_callback, const zookeeper_sys_tls_t *tls,
                                     void *sasl_params)
{
    zcert_t *cert = NULL;
#ifdef HAVE_OPENSSL_H
    zcert_t kept;
    if (tls) {
        if (!keep(&kept, tls)) {
            errno = ENOMEM;
            return NULL;
        }
        cert = &kept;
    }
#else
    if (tls) {
        errno = ENOTSUP;
        return NULL;
    }
#endif
#ifndef HAVE_CYRUS_SASL_H
    if (sasl_params) {
        errno = ENOTSUP;
        return NULL;
    }
#endif
    return zookeeper_init_internal(host, watcher, recv_timeout, clientid, context, flags, log_callback, cert,
                                   sasl_params);
}
