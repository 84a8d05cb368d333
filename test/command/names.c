/*
 * names.c - LD_PRELOAD for a program that knows the name two.test, with two addresses: 127.0.0.2,
 * and then 127.0.0.1.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

typedef int look_up_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    look_up_fn *look_up;
    int code;

    *(void **)&look_up = dlsym(RTLD_NEXT, "getaddrinfo");
    if (node == NULL || strcmp(node, "two.test") != 0)
        return look_up(node, service, hints, ret);
    code = look_up("127.0.0.2", service, hints, ret);
    return code == 0 ? look_up("127.0.0.1", service, hints, &(*ret)->ai_next) : code;
}
