/*
 * redlock.hpp - redlock.h for C++17: a client and its leases as objects, std::chrono, exceptions.
 *
 * It is longer than others: a layer that is a header is one file.  It is thin: inline functions
 * over a blocking client of the C library.  redlock(3) says what each call and each option does;
 * this file says only what differs.
 *
 *     redlockpp::client client;                             // The masters of REDLOCK_MASTERS.
 *     redlockpp::lock_options opts;
 *     opts.ttl = 30s;
 *     auto lease = client.lock("jobs/7", opts);           // Throws redlockpp::error.
 *     while (work_is_left()) {
 *         lease.check();                                  // Throws if the lock is lost.
 *         do_one_step();
 *     }
 *     lease.unlock();                                     // Throws if it was lost before.
 *
 * Errors.  Each call that can fail has two forms.  One throws redlockpp::error, whose code() is the
 * status, whose what() is the message with its context, and whose reasons() are the masters at
 * fault.  The other takes a std::error_code,
 * sets it, and throws only std::bad_alloc.  Compare with redlockpp::status:
 * `ec == redlockpp::status::contended`.
 *
 * Lifetime.  A lease keeps its client open.  The destructor of a lease unlocks and may not throw;
 * call unlock() to learn the outcome.  A lost function must not destroy a client's last owner.
 *
 * Threads.  Any number of threads may use one client.  One lease object belongs to one thread at a
 * time, but any thread may call held(), remaining() and check() while no other thread moves it.
 *
 * A lease is no BasicLockable, so std::unique_lock does not take it.  Both would hide that a lease
 * can be lost: their users do not ask again after lock(), and their unlock() reports no error.
 */
#ifndef REDLOCK_HPP
#define REDLOCK_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "redlock.h"

namespace redlockpp
{

using std::chrono::milliseconds;

/* As enum redlock_status. */
enum class status {
    ok = REDLOCK_OK,
    contended = REDLOCK_CONTENDED,
    unreachable = REDLOCK_UNREACHABLE,
    too_late = REDLOCK_TOO_LATE,
    lost = REDLOCK_LOST,
    interrupted = REDLOCK_INTERRUPTED,
    not_ready = REDLOCK_NOT_READY,
    invalid = REDLOCK_E_INVAL,
    no_memory = REDLOCK_E_NOMEM,
    state = REDLOCK_E_STATE,
    system = REDLOCK_E_SYSTEM,
    forbidden = REDLOCK_E_FORBIDDEN,
    wrong_set = REDLOCK_E_WRONG_SET,
};

} // namespace redlockpp

template <> struct std::is_error_code_enum<redlockpp::status> : std::true_type {
};

namespace redlockpp
{

inline const std::error_category &category() noexcept
{
    struct of_redlock final : std::error_category {
        const char *name() const noexcept override
        {
            return "redlock";
        }
        std::string message(int code) const override
        {
            return redlock_strerror(code);
        }
    };
    static const of_redlock only;
    return only;
}

inline std::error_code make_error_code(status code) noexcept
{
    return {static_cast<int>(code), category()};
}

/* As struct redlock_reason. */
struct reason {
    unsigned master;
    std::string address;
    std::string id;
    std::optional<milliseconds> over; /* From when the call failed.  None: not known. */
    std::string words;
    bool decides;
};

/* what() is redlock_errmsg(), and reasons() has the answers of redlock_reason(). */
class error : public std::runtime_error
{
  public:
    error(std::error_code code, const char *message, std::vector<reason> reasons = {})
        : std::runtime_error(*message != '\0' ? std::string(message) : code.message()), code_(code),
          reasons_(std::make_shared<const std::vector<reason>>(std::move(reasons)))
    {
    }
    const std::error_code &code() const noexcept
    {
        return code_;
    }
    /* The masters at fault, those that decide first.  Empty: none was. */
    const std::vector<reason> &reasons() const noexcept
    {
        return *reasons_;
    }

  private:
    std::error_code code_;
    std::shared_ptr<const std::vector<reason>> reasons_; /* A copy of an error throws nothing. */
};

/* As struct redlock_options.  A missing text means NULL: the environment variable. */
struct options {
    std::optional<std::string> masters;
    milliseconds connect_timeout{1000};
    milliseconds reply_timeout{50};
    std::uint32_t drift_ppm = 10000;
    milliseconds drift_fixed{2};
    milliseconds max_ttl{60000};
    bool restart_guard = true;
    redlock_clock_guard clock_guard = REDLOCK_CLOCK_GUARD_PERIODIC;
    /* Must not throw, and must not use the client. */
    std::function<void(redlock_level, const char *)> log;
    std::optional<std::string> note;
    bool tls_verify = true;
    std::optional<std::string> tls_ca, tls_cert, tls_key, tls_server_name;
};

/* As struct redlock_lock_options. */
struct lock_options {
    static constexpr milliseconds without_limit = milliseconds::max();

    milliseconds ttl{10000};
    milliseconds wait{0}; /* Negative counts as zero. */
    milliseconds retry_delay_min{50};
    milliseconds retry_delay_max{200};
    bool renew = true;
    bool fence = false;
    bool fair = false;
    bool shared = false;
    milliseconds max_hold{0};
    milliseconds lost_margin{0};
    std::uint32_t permits = 0;
    /* Called in the thread of the client.  Must not throw, and may use held(), remaining() and
     * check() of the lease only.  Refused with reentrant: that lease outlives the object. */
    std::function<void()> lost;
    bool reentrant = false;
    const void *owner = nullptr;
    std::optional<std::string> note;
};

namespace detail
{

inline constexpr const char *bad_duration = "a duration is negative or too long";
inline constexpr const char *bad_text = "a text must not contain a NUL";

inline bool in_range(std::initializer_list<milliseconds> spans) noexcept
{
    for (milliseconds span : spans)
        if (span.count() < 0 || span.count() > UINT32_MAX)
            return false;
    return true;
}

inline std::uint32_t to_ms(milliseconds span) noexcept
{
    return static_cast<std::uint32_t>(span.count());
}

inline std::uint32_t to_wait(milliseconds span) noexcept
{
    return span.count() < 0 ? 0 : span.count() > UINT32_MAX ? UINT32_MAX : to_ms(span);
}

inline const char *to_text(const std::optional<std::string> &text) noexcept
{
    return text ? text->c_str() : nullptr;
}

/* The C library would read a text only up to its first NUL. */
inline bool is_whole(const std::string &text) noexcept
{
    return text.find('\0') == std::string::npos;
}

inline bool are_whole(std::initializer_list<const std::optional<std::string> *> texts) noexcept
{
    for (const std::optional<std::string> *text : texts)
        if (*text && !is_whole(**text))
            return false;
    return true;
}

inline std::vector<reason> read_reasons(struct redlock *rl)
{
    std::vector<reason> reasons;
    struct redlock_reason why = {};

    why.size = sizeof why;
    while (redlock_reason(rl, static_cast<unsigned>(reasons.size()), &why) == REDLOCK_OK)
        reasons.push_back(
            {why.master, why.address, why.id,
             why.over_ms != UINT32_MAX ? std::optional(milliseconds(why.over_ms)) : std::nullopt,
             why.words, why.decides});
    return reasons;
}

inline void throw_if(const std::error_code &ec, struct redlock *rl)
{
    if (ec == status::no_memory)
        throw std::bad_alloc();
    if (ec)
        throw error(ec, redlock_errmsg(rl), read_reasons(rl));
}

/* Read a struct that begins with its size. */
template <typename T, typename F, typename... A> T read(struct redlock *rl, F call, A... args)
{
    T ret = {};
    ret.size = sizeof ret;
    throw_if(static_cast<status>(call(args..., &ret)), rl);
    return ret;
}
} // namespace detail

class client;

/* A lock that was acquired.  After a move, unlock(), detach() or cancel() it is empty: not held. */
class lease
{
  public:
    lease() = default;
    lease(lease &&other) noexcept
    {
        swap(other);
    }
    lease &operator=(lease &&other) noexcept
    {
        lease(std::move(other)).swap(*this);
        return *this;
    }
    lease(const lease &) = delete;
    lease &operator=(const lease &) = delete;
    /* Throws nothing: a release that is not confirmed is logged, and counted in stats(). */
    ~lease()
    {
        (void)redlock_unlock(lease_);
    }

    void swap(lease &other) noexcept
    {
        std::swap(lost_, other.lost_);
        std::swap(client_, other.client_);
        std::swap(lease_, other.lease_);
    }

    /* How long the lock can still be relied on.  Zero: it is not held. */
    milliseconds remaining() const noexcept
    {
        return milliseconds(lease_ != nullptr ? redlock_remaining_ms(lease_) : 0);
    }
    bool held() const noexcept
    {
        return remaining().count() > 0;
    }
    /* Throws error with status::lost if the lock is not held. */
    void check() const
    {
        if (!held())
            throw error(status::lost,
                        lease_ == nullptr ? "" : ("the lock " + resource() + " is lost").c_str());
    }

    void extend(milliseconds ttl = milliseconds(0))
    {
        if (!detail::in_range({ttl}))
            throw error(status::invalid, detail::bad_duration);
        must([&](std::error_code &ec) { extend(ttl, ec); });
    }
    void extend(milliseconds ttl, std::error_code &ec)
    {
        ec = detail::in_range({ttl})
                 ? static_cast<status>(redlock_extend(lease_, detail::to_ms(ttl)))
                 : status::invalid;
    }

    /* The lease is empty afterwards, except after status::state. */
    void unlock()
    {
        must([&](std::error_code &ec) { unlock(ec); });
    }
    void unlock(std::error_code &ec)
    {
        finish(redlock_unlock(lease_), ec);
    }
    /* Frees the lease and keeps the lock, for a process that has the token. */
    void detach()
    {
        must([&](std::error_code &ec) { detach(ec); });
    }
    void detach(std::error_code &ec)
    {
        finish(redlock_detach(lease_), ec);
    }
    /* Gives the lock up without waiting. */
    void cancel() noexcept
    {
        redlock_cancel(lease_);
        forget();
    }

    std::string resource() const
    {
        return info().resource;
    }
    std::string token() const
    {
        return info().token;
    }
    std::uint64_t fence() const
    {
        return info().fence;
    }
    std::uint32_t permit() const
    {
        return info().permit;
    }
    std::uint32_t holds() const
    {
        return info().holds;
    }
    /* For calls of the C library.  Empty: nullptr. */
    redlock_lease *get() const noexcept
    {
        return lease_;
    }

  private:
    friend class client;
    struct redlock_lease_info info() const
    {
        return detail::read<struct redlock_lease_info>(client_.get(), redlock_lease_info, lease_);
    }
    /* Make a call that sets ec, and throw that error.  The call may reset client_. */
    template <typename F> void must(F call) const
    {
        std::shared_ptr<struct redlock> kept = client_;
        std::error_code ec;

        call(ec);
        detail::throw_if(ec, kept.get());
    }
    void finish(int code, std::error_code &ec)
    {
        ec = static_cast<status>(code);
        if (code != REDLOCK_E_STATE)
            forget();
    }
    void forget() noexcept
    {
        lease_ = nullptr;
        client_.reset();
        lost_.reset();
    }

    /* lost_ is destroyed last: the library calls *lost_ until the lease is freed. */
    std::shared_ptr<std::function<void()>> lost_;
    std::shared_ptr<struct redlock> client_;
    redlock_lease *lease_ = nullptr;
};

/* A blocking client. */
class client
{
  public:
    explicit client(const options &opts = {})
    {
        std::error_code ec;

        if (const char *why = refusal(opts))
            throw error(status::invalid, why);
        open(opts, ec);
        detail::throw_if(ec, nullptr);
    }
    client(const options &opts, std::error_code &ec)
    {
        open(opts, ec);
    }

    lease lock(const std::string &resource, const lock_options &opts = {})
    {
        return lock(std::vector<std::string>{resource}, opts);
    }
    lease lock(const std::string &resource, const lock_options &opts, std::error_code &ec)
    {
        return lock(std::vector<std::string>{resource}, opts, ec);
    }
    /* All of the names or none. */
    lease lock(const std::vector<std::string> &resources, const lock_options &opts = {})
    {
        return must_begin(resources, nullptr, opts);
    }
    lease lock(const std::vector<std::string> &resources, const lock_options &opts,
               std::error_code &ec)
    {
        return begin(resources, nullptr, opts, ec);
    }

    /* A lease of a token that another process handed on.  It is not held before an extend. */
    lease adopt(const std::vector<std::string> &resources, const std::string &token,
                const lock_options &opts = {})
    {
        return must_begin(resources, &token, opts);
    }
    lease adopt(const std::vector<std::string> &resources, const std::string &token,
                const lock_options &opts, std::error_code &ec)
    {
        return begin(resources, &token, opts, ec);
    }

    /* Ends the calls to lock() that are under way, or the next one, with status::interrupted.  Any
     * thread or signal handler may call it. */
    void interrupt() noexcept
    {
        redlock_interrupt(get());
    }

    /* Whether a majority may vote now.  status::not_ready: ask again after *ret_after. */
    std::error_code ready(milliseconds *ret_after = nullptr)
    {
        std::uint32_t ms = 0;
        std::error_code ec = static_cast<status>(redlock_ready(get(), &ms));

        if (ret_after != nullptr)
            *ret_after = milliseconds(ms);
        return ec;
    }
    struct redlock_stats stats() const
    {
        return detail::read<struct redlock_stats>(get(), redlock_stats, get());
    }
    /* What this client knows of a master.  number: as in messages, from 1. */
    struct redlock_master_stats master_stats(unsigned number) const
    {
        return detail::read<struct redlock_master_stats>(get(), ::redlock_master_stats, get(),
                                                         number);
    }
    /* The message of the latest call in this thread. */
    const char *message() const noexcept
    {
        return redlock_errmsg(get());
    }
    /* For calls of the C library. */
    struct redlock *get() const noexcept
    {
        return client_.get();
    }

  private:
    using logger = std::function<void(redlock_level, const char *)>;

    static void call_log(void *arg, redlock_level level, const char *message) noexcept
    {
        (*static_cast<logger *>(arg))(level, message);
    }
    static void call_lost(redlock_lease *, void *arg) noexcept
    {
        (*static_cast<std::function<void()> *>(arg))();
    }

    void open(const options &opts, std::error_code &ec)
    {
        auto log = std::make_shared<logger>(opts.log);
        struct redlock *made = nullptr;
        redlock_options plain;

        if (refusal(opts) != nullptr) {
            ec = status::invalid;
            return;
        }
        redlock_options_init(&plain);
        plain.masters = detail::to_text(opts.masters);
        plain.connect_timeout_ms = detail::to_ms(opts.connect_timeout);
        plain.reply_timeout_ms = detail::to_ms(opts.reply_timeout);
        plain.drift_ppm = opts.drift_ppm;
        plain.drift_fixed_ms = detail::to_ms(opts.drift_fixed);
        plain.max_ttl_ms = detail::to_ms(opts.max_ttl);
        plain.restart_guard = opts.restart_guard;
        plain.clock_guard = opts.clock_guard;
        plain.log = opts.log ? call_log : nullptr;
        plain.log_arg = log.get();
        plain.note = detail::to_text(opts.note);
        plain.tls_verify = opts.tls_verify;
        plain.tls_ca = detail::to_text(opts.tls_ca);
        plain.tls_cert = detail::to_text(opts.tls_cert);
        plain.tls_key = detail::to_text(opts.tls_key);
        plain.tls_server_name = detail::to_text(opts.tls_server_name);
        ec = static_cast<status>(redlock_open(&plain, &made));
        if (!ec)
            client_ = std::shared_ptr<struct redlock>(
                made, [log](struct redlock *rl) { (void)redlock_close(rl); });
    }

    /* An error that the C library would not see, or nullptr. */
    static const char *refusal(const options &opts)
    {
        if (!detail::are_whole({&opts.masters, &opts.note, &opts.tls_ca, &opts.tls_cert,
                                &opts.tls_key, &opts.tls_server_name}))
            return detail::bad_text;
        return detail::in_range(
                   {opts.connect_timeout, opts.reply_timeout, opts.drift_fixed, opts.max_ttl})
                   ? nullptr
                   : detail::bad_duration;
    }

    static const char *refusal(const std::vector<std::string> &resources, const std::string *token,
                               const lock_options &opts)
    {
        for (const std::string &resource : resources)
            if (!detail::is_whole(resource))
                return detail::bad_text;
        if ((token != nullptr && !detail::is_whole(*token)) || !detail::are_whole({&opts.note}))
            return detail::bad_text;
        if (!detail::in_range({opts.ttl, opts.retry_delay_min, opts.retry_delay_max, opts.max_hold,
                               opts.lost_margin}))
            return detail::bad_duration;
        return opts.reentrant && opts.lost ? "lost does not go with reentrant" : nullptr;
    }

    /* A null token means lock, else adopt.  Throws if that fails. */
    lease must_begin(const std::vector<std::string> &resources, const std::string *token,
                     const lock_options &opts)
    {
        std::error_code ec;
        lease made = begin(resources, token, opts, ec);

        if (const char *why = refusal(resources, token, opts))
            throw error(status::invalid, why);
        detail::throw_if(ec, get());
        return made;
    }

    /* A null token means lock, else adopt. */
    lease begin(const std::vector<std::string> &resources, const std::string *token,
                const lock_options &opts, std::error_code &ec)
    {
        std::vector<const char *> names;
        redlock_lock_options plain;
        lease made;

        if (refusal(resources, token, opts) != nullptr) {
            ec = status::invalid;
            return {};
        }
        for (const std::string &resource : resources)
            names.push_back(resource.c_str());
        made.client_ = client_;
        if (opts.lost)
            made.lost_ = std::make_shared<std::function<void()>>(opts.lost);
        plain = translate(opts, made);
        ec = static_cast<status>(begin(names, token, plain, &made.lease_));
        return ec ? lease() : std::move(made);
    }

    /* A vector of one name is a plain lock. */
    int begin(const std::vector<const char *> &names, const std::string *token,
              const redlock_lock_options &opts, redlock_lease **ret_lease)
    {
        if (names.size() != 1)
            return token == nullptr
                       ? redlock_lock_many(get(), names.data(), names.size(), &opts, ret_lease)
                       : redlock_adopt_many(get(), names.data(), names.size(), token->c_str(),
                                            &opts, ret_lease);
        return token == nullptr ? redlock_lock(get(), names[0], &opts, ret_lease)
                                : redlock_adopt(get(), names[0], token->c_str(), &opts, ret_lease);
    }

    static redlock_lock_options translate(const lock_options &opts, const lease &made)
    {
        redlock_lock_options plain;

        redlock_lock_options_init(&plain);
        plain.ttl_ms = detail::to_ms(opts.ttl);
        plain.wait_ms = detail::to_wait(opts.wait);
        plain.retry_delay_min_ms = detail::to_ms(opts.retry_delay_min);
        plain.retry_delay_max_ms = detail::to_ms(opts.retry_delay_max);
        plain.no_renew = !opts.renew;
        plain.fence = opts.fence;
        plain.fair = opts.fair;
        plain.shared = opts.shared;
        plain.max_hold_ms = detail::to_ms(opts.max_hold);
        plain.lost_margin_ms = detail::to_ms(opts.lost_margin);
        plain.permits = opts.permits;
        plain.lost = made.lost_ ? call_lost : nullptr;
        plain.lost_arg = made.lost_.get();
        plain.reentrant = opts.reentrant;
        plain.owner = opts.owner;
        plain.note = detail::to_text(opts.note);
        return plain;
    }

    std::shared_ptr<struct redlock> client_;
};

} // namespace redlockpp

#endif /* REDLOCK_HPP */
