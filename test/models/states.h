/*
 * states.h - all states of a small model, and the shortest story to a bad one.
 *
 * A model says what the first state is, which steps lead from a state to others, and what is wrong
 * in a state.  states_explore() visits every state that can be reached, breadth first.  States are
 * stored whole and compared whole, so no state is taken for another.  The first wrong state that it
 * finds has a shortest story.  states_stuck() then asks whether something good stays possible.
 *
 * A program explores one model at a time.  All memory is freed by states_free().
 */
#ifndef TEST_MODELS_STATES_H
#define TEST_MODELS_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a step.  states_stuck() takes only those steps that its caller names. */
enum {
    STEP_PLAIN = 1,    /* The protocol goes on. */
    STEP_FAULT = 2,    /* Something breaks. */
    STEP_OPERATOR = 4, /* A person does something. */
};

struct model {
    size_t size; /* Bytes of a state.  All of them count, padding too. */
    void (*begin)(void *ret_state);
    /* Calls states_step() for every step from the state. */
    void (*steps)(const void *state);
    /* What is wrong in the state, or NULL. */
    const char *(*judge)(const void *state);
    /* Prints what the step does, without a line feed. */
    void (*tell)(const void *from, const void *to, uint32_t step);
};

struct states_limits {
    size_t memory_mb;
    unsigned seconds;
    bool stuck; /* Remember the steps, for states_stuck(). */
};

struct states_found {
    size_t states, transitions;
    unsigned depth;    /* Steps of the longest of the shortest stories. */
    bool complete;     /* All states were visited, or a wrong one was found. */
    const char *wrong; /* Of the first wrong state, or NULL. */
    size_t at;         /* That state, for states_story(). */
};

/* For model->steps: a step leads to this state.  The model chooses the number of the step. */
void states_step(const void *to, uint32_t step, unsigned kind);

/* Whether all states were visited, or a wrong one was found. */
bool states_explore(const struct model *model, const struct states_limits *limits,
                    struct states_found *ret_found);

/* How many states there are from which steps of these kinds never lead to a good state.
 * *ret_at is one of those with the shortest story. */
size_t states_stuck(unsigned kinds, bool (*is_good)(const void *state), size_t *ret_at);

/* How many states are so. */
size_t states_count(bool (*is_so)(const void *state));

/* Prints the steps to the state, one per line. */
void states_story(size_t at);

void states_free(void);

/* For main(): NAME=NUMBER.  False: it is none of them. */
struct states_option {
    const char *name;
    unsigned *value;
};

bool states_read_option(const char *arg, const struct states_option *options, size_t len);

#endif /* TEST_MODELS_STATES_H */
