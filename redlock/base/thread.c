/*
 * thread.c - the stack of a thread, with room for the program's thread-local data.
 *
 * glibc takes static thread-local data out of the stack of a new thread.  A program that has more
 * of them than fits would get EINVAL, or a stack of one page.
 */
#include "redlock/base/thread.h"

#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_MIN ((size_t)256 * 1024) /* Chosen: NSS modules use tens of KiB. */

/* Add the thread-local data of one module.  They may be aligned to more than a page. */
static int add_local(struct dl_phdr_info *module, size_t size, void *sum)
{
    (void)size;
    for (size_t i = 0; i < module->dlpi_phnum; i++)
        if (module->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)sum += module->dlpi_phdr[i].p_memsz + module->dlpi_phdr[i].p_align;
    return 0;
}

static size_t stack_size(const pthread_attr_t *attr)
{
    size_t size = 0, local = 0;

    (void)pthread_attr_getstacksize(attr, &size);
    if (size < STACK_MIN)
        size = STACK_MIN;
    (void)dl_iterate_phdr(add_local, &local);
    return local <= SIZE_MAX - size ? size + local : size;
}

int thread_start(pthread_t *ret_thread, void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    int error = pthread_attr_init(&attr);

    if (error != 0)
        return error;
    if (ret_thread == NULL)
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, stack_size(&attr));
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attr, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (error == 0 && ret_thread != NULL)
        *ret_thread = thread;
    return error;
}
