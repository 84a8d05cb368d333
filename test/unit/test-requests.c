/*
 * test-requests.c - calls that are handed in without a mutex.
 */
#include "redlock/client/requests.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "test/lib/check.h"

#define THREADS 4
#define EACH 2000

TEST(a_new_stack_is_closed)
{
    struct requests requests;
    struct request request;

    requests_init(&requests);
    CHECK(!requests_push(&requests, &request));
    CHECK(requests_take(&requests) == NULL);
    CHECK(requests_close(&requests) == NULL);
}

TEST(requests_come_out_in_order)
{
    struct requests requests;
    struct request list[3];

    requests_init(&requests);
    requests_open(&requests);
    for (unsigned i = 0; i < 3; i++)
        CHECK(requests_push(&requests, &list[i]));
    CHECK(requests_take(&requests) == &list[0]);
    CHECK(list[0].next == &list[1]);
    CHECK(list[1].next == &list[2]);
    CHECK(list[2].next == NULL);
    CHECK(requests_take(&requests) == NULL);
    CHECK(requests_push(&requests, &list[0])); /* It stays open. */
    CHECK(requests_take(&requests) == &list[0]);
}

TEST(what_was_handed_in_is_taken_when_the_stack_closes)
{
    struct requests requests;
    struct request list[2];

    requests_init(&requests);
    requests_open(&requests);
    CHECK(requests_push(&requests, &list[0]));
    requests_open(&requests); /* An open stack keeps what it has. */
    CHECK(requests_push(&requests, &list[1]));
    CHECK(requests_close(&requests) == &list[0]);
    CHECK(list[0].next == &list[1]);
    CHECK(!requests_push(&requests, &list[0]));
    CHECK(requests_close(&requests) == NULL);
}

/* ---- Threads ---- */

static atomic_uint pushing; /* Threads that have not handed in all. */

struct pusher {
    pthread_t thread;
    struct requests *requests;
    struct request list[EACH];
    uint8_t seen[EACH];
};

static void *push_all(void *arg)
{
    struct pusher *pusher = arg;

    for (unsigned i = 0; i < EACH; i++)
        while (!requests_push(pusher->requests, &pusher->list[i]))
            (void)sched_yield();
    atomic_fetch_sub(&pushing, 1);
    return NULL;
}

static void count(struct pusher *pushers, const struct request *request)
{
    for (; request != NULL; request = request->next)
        for (unsigned i = 0; i < THREADS; i++)
            if (request >= pushers[i].list && request < pushers[i].list + EACH)
                pushers[i].seen[request - pushers[i].list]++;
}

TEST(threads_hand_in_each_request_once)
{
    static struct pusher pushers[THREADS];
    struct requests requests;
    unsigned once = 0;
    bool over = false;

    requests_init(&requests);
    atomic_store(&pushing, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        pushers[i].requests = &requests;
        CHECK(pthread_create(&pushers[i].thread, NULL, push_all, &pushers[i]) == 0);
    }
    while (!over) {
        over = atomic_load(&pushing) == 0;
        requests_open(&requests);
        (void)sched_yield(); /* Let others hand in, also where one thread runs at a time. */
        count(pushers, requests_take(&requests));
        count(pushers, requests_close(&requests));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(pushers[i].thread, NULL);
        for (unsigned n = 0; n < EACH; n++)
            once += pushers[i].seen[n] == 1;
    }
    CHECK_UINT(once, THREADS * EACH);
}

CHECK_MAIN(RUN(a_new_stack_is_closed), RUN(requests_come_out_in_order),
           RUN(what_was_handed_in_is_taken_when_the_stack_closes),
           RUN(threads_hand_in_each_request_once))
