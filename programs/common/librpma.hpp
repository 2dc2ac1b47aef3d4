// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// librpma.hpp -- librpma for C++20: owners of its objects, and exceptions outside the data path
//
// Conventions, unless a declaration says otherwise:
// - Each class owns one object of librpma, or nothing. A member has the name of its function
//   without that of the class. It is documented in librpma.h and in section 3 of the manual:
//   rpma::conn::read() is rpma_read(), rpma::mr_local's constructor is rpma_mr_reg().
// - Functions that post, poll or wait for completions are noexcept and return a status, which
//   is [[nodiscard]]. They have the cost of the C function. All others throw rpma::error.
// - An owner converts to its handle, also as an argument of C functions. So a struct rpma_work
//   accepts regions by their names. A temporary owner does not convert: its handle would be
//   deleted too early.
// - An owner is moved, never copied; a moved-from one owns nothing. A destructor deletes the
//   object; if the provider refuses, the library logs the failure, and the object leaks.
//   close() does the same and throws: the owner then keeps the object if the library kept it.
// - Owners are as thread-safe as the objects that they own. Borrowed objects must outlive them.

#ifndef LIBRPMA_HPP
#define LIBRPMA_HPP 1

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <librpma.h>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace rpma {
// Distinguishes these functions from those inside of librpma.a.
inline namespace v1 {

// ---- return codes ------------------------------------------------------------------------

// The result of a data path call: RPMA_E_*, or success. Converts to std::error_code.
enum class [[nodiscard]] status : int{ok = 0,
                                      unknown = RPMA_E_UNKNOWN,
                                      nosupp = RPMA_E_NOSUPP,
                                      provider = RPMA_E_PROVIDER,
                                      nomem = RPMA_E_NOMEM,
                                      inval = RPMA_E_INVAL,
                                      no_completion = RPMA_E_NO_COMPLETION,
                                      no_event = RPMA_E_NO_EVENT,
                                      again = RPMA_E_AGAIN,
                                      shared_channel = RPMA_E_SHARED_CHANNEL,
                                      not_shared_chnl = RPMA_E_NOT_SHARED_CHNL};

} // namespace v1
} // namespace rpma

template <> struct std::is_error_code_enum<rpma::status> : std::true_type {};

namespace rpma {
inline namespace v1 {

namespace detail {

class rpma_category final : public std::error_category {
  public:
    const char *name() const noexcept override { return "librpma"; }
    std::string message(int code) const override { return rpma_err_2str(code); }
    // The generic condition, for programs that compare with std::errc.
    std::error_condition default_error_condition(int code) const noexcept override {
        switch (code) {
        case RPMA_E_NOSUPP:
            return std::errc::not_supported;
        case RPMA_E_NOMEM:
            return std::errc::not_enough_memory;
        case RPMA_E_INVAL:
            return std::errc::invalid_argument;
        case RPMA_E_NO_COMPLETION:
        case RPMA_E_NO_EVENT:
        case RPMA_E_AGAIN:
            return std::errc::resource_unavailable_try_again;
        default:
            return {code, *this};
        }
    }
};

} // namespace detail

// The category of the codes RPMA_E_*.
inline const std::error_category &category() noexcept {
    static const detail::rpma_category instance;
    return instance;
}

inline std::error_code make_error_code(status code) noexcept {
    return {static_cast<int>(code), category()};
}

// A call that failed. code() is the RPMA_E_*. what() is the log line of the failure, if
// keep_log_lines() was called and RPMA_LOG_THRESHOLD permits the line; otherwise the name of
// the function and the text of the code.
class error : public std::system_error {
  public:
    error(status code, int provider_error, const std::string &text)
        : std::system_error(code), text_(text), provider_error_(provider_error) {}

    const char *what() const noexcept override { return text_.what(); }
    // The error number of libibverbs or librdmacm; 0 if there is none.
    int provider_error() const noexcept { return provider_error_; }

  private:
    std::runtime_error text_; // copying this string never throws
    int provider_error_;
};

namespace detail {

inline std::atomic<rpma_log_function *> next_log_function = nullptr;
// The log line of this thread's latest failure. The error takes it and leaves it empty.
inline constinit thread_local char log_line[1024] = "";

[[gnu::format(printf, 5, 6)]] inline void
keep_log_line(enum rpma_log_level level, const char *file_name, const int line_no,
              const char *function_name, const char *message_format, ...) {
    char message[sizeof(log_line)];
    va_list values;
    va_start(values, message_format);
    std::vsnprintf(message, sizeof(message), message_format, values);
    va_end(values);
    message[std::strcspn(message, "\n")] = '\0';
    // A failed call logs one error, or one warning if it does not know the cause.
    if (level <= RPMA_LOG_LEVEL_WARNING)
        std::memcpy(log_line, message, std::strlen(message) + 1);
    if (rpma_log_function *next = next_log_function.load(std::memory_order_acquire))
        next(level, file_name, line_no, function_name, "%s\n", message);
}

// These results are not failures, so the library logs no line: a stored line is of another
// call.
constexpr bool has_line(status code) noexcept {
    return code != status::no_completion && code != status::no_event && code != status::again &&
           code != status::shared_channel && code != status::not_shared_chnl;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail(status code, int provider_error,
                                                        std::string_view function) {
    std::string text(has_line(code) ? log_line : "");
    log_line[0] = '\0';
    if (text.empty())
        text = std::string(function) + (function.empty() ? "" : ": ") +
               rpma_err_2str(static_cast<int>(code));
    throw error(code, provider_error, text);
}

// The name of a librpma function, as compilers print it: "[function = &rpma_post]".
template <auto function> constexpr std::string_view name_of() {
    constexpr std::string_view before = "function = ";
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find(before) + before.size());
    text.remove_prefix(text.starts_with('&'));
    return text.substr(0, text.find_first_of(";]"));
}

// Calls a function of librpma and throws if it fails. Returns true if it succeeded, false after
// the tolerated code.
template <auto function, status tolerated = status::ok, class... Args> bool call(Args... args) {
    const int errno_before = std::exchange(errno, 0);
    log_line[0] = '\0';
    const auto code = static_cast<status>(function(args...));
    // errno then holds only the provider's number of this call; success leaves it unchanged.
    const int provider_error = std::exchange(errno, errno_before);
    if (code != status::ok && code != tolerated)
        fail(code, provider_error, name_of<function>());
    return code == status::ok;
}

template <class> struct signature;
template <class... Parameters> struct signature<int (*)(Parameters...)> {
    using last = std::tuple_element_t<sizeof...(Parameters) - 1, std::tuple<Parameters...>>;
};
// The type that the last parameter of a function points to.
template <auto function>
using output = std::remove_pointer_t<typename signature<decltype(function)>::last>;

// The output of a function, whose last parameter points to it.
template <auto function, class... Args> output<function> get(Args... args) {
    output<function> value{};
    call<function>(args..., &value);
    return value;
}

template <class Handle> class ref {
  public:
    using handle_type = Handle;

    ref() noexcept = default;
    explicit ref(Handle *handle) noexcept : handle_(handle) {}
    Handle *get() const noexcept { return handle_; }
    operator Handle *() const noexcept { return handle_; }

  protected:
    Handle *handle_ = nullptr;
};

template <class Ref, auto remove> class owner : public Ref {
  public:
    using handle_type = typename Ref::handle_type;

    owner() noexcept = default;
    // Takes ownership of an object that a C function created.
    explicit owner(handle_type *handle) noexcept : Ref(handle) {}
    owner(owner &&other) noexcept : Ref(other.release()) {}
    owner &operator=(owner &&other) noexcept {
        owner taken(std::move(other));
        std::swap(this->handle_, taken.handle_);
        return *this;
    }
    ~owner() {
        if (this->handle_ != nullptr)
            (void)remove(&this->handle_);
    }

    // The object, which is still owned.
    handle_type *get() noexcept { return this->handle_; }
    const handle_type *get() const noexcept { return this->handle_; }
    operator handle_type *() &noexcept { return this->handle_; }
    operator const handle_type *() const &noexcept { return this->handle_; }
    operator handle_type *() && = delete;
    operator const handle_type *() const && = delete;
    // Releases ownership: from now on the caller deletes the object.
    [[nodiscard]] handle_type *release() noexcept {
        return std::exchange(this->handle_, nullptr);
    }
    // Deletes the object, if there is one.
    void close() { call<remove>(&this->handle_); }
};

// A configuration; its setters return it, so that calls can be chained.
template <class Self, class Handle, auto remove>
class config : public owner<ref<Handle>, remove> {
  public:
    using owner<ref<Handle>, remove>::owner;

  protected:
    template <auto function, class Value> Self &set(Value value) {
        call<function>(this->get(), value);
        return static_cast<Self &>(*this);
    }
};

inline rpma_conn_private_data private_data(std::span<const std::byte> bytes) {
    if (bytes.size() > UINT8_MAX)
        throw error(status::inval, 0,
                    "private data has " + std::to_string(bytes.size()) +
                        " bytes, more than 255");
    // The library only reads outgoing data; struct rpma_conn_private_data serves both
    // directions.
    return {const_cast<std::byte *>(bytes.data()), static_cast<uint8_t>(bytes.size())};
}

inline std::span<const std::byte> bytes_of(const void *ptr, std::size_t size) noexcept {
    return {static_cast<const std::byte *>(ptr), size};
}

} // namespace detail

// Adds the log lines of the library to errors. It sets the log function of the process
// (rpma_log_set_function(3)), which passes each line to next: to the log function of the
// program, if it has one. With nullptr the lines reach neither syslog nor stderr: librpma's
// default log function has no name. Call it before other threads use the library.
inline void keep_log_lines(rpma_log_function *next = nullptr) {
    detail::next_log_function.store(next, std::memory_order_release);
    (void)rpma_log_set_function(detail::keep_log_line);
}

// Throws unless status is a success. It must be the status of this thread's latest call.
inline void check(status code) {
    if (code != status::ok) [[unlikely]]
        detail::fail(code, code == status::provider ? errno : 0, {});
}

// ---- devices -----------------------------------------------------------------------------

inline ibv_context *get_ibv_context(const char *addr, rpma_util_ibv_context_type type) {
    return detail::get<rpma_utils_get_ibv_context>(addr, type);
}

inline bool ibv_context_is_odp_capable(ibv_context *context) {
    return detail::get<rpma_utils_ibv_context_is_odp_capable>(context) != 0;
}

class peer : public detail::owner<detail::ref<rpma_peer>, rpma_peer_delete> {
  public:
    using owner::owner;
    explicit peer(ibv_context *context) : owner(detail::get<rpma_peer_new>(context)) {}

    ibv_pd *get_ibv_pd() const { return detail::get<rpma_peer_get_ibv_pd>(get()); }
    int get_event_fd() const { return detail::get<rpma_peer_get_event_fd>(get()); }
    // std::nullopt: no event is available now, on a descriptor with O_NONBLOCK.
    std::optional<rpma_peer_event> next_event() {
        rpma_peer_event event;
        if (!detail::call<rpma_peer_next_event, status::no_event>(get(), &event))
            return std::nullopt;
        return event;
    }
};

// ---- peer configuration ------------------------------------------------------------------

class peer_cfg : public detail::config<peer_cfg, rpma_peer_cfg, rpma_peer_cfg_delete> {
  public:
    struct served {
        bool flush, atomic_write;
    };

    using config::config;
    peer_cfg() : config(detail::get<rpma_peer_cfg_new>()) {}
    explicit peer_cfg(std::span<const std::byte> descriptor) {
        detail::call<rpma_peer_cfg_from_descriptor>(descriptor.data(), descriptor.size(),
                                                    &handle_);
    }

    peer_cfg &set_direct_write_to_pmem(bool supported) {
        return set<rpma_peer_cfg_set_direct_write_to_pmem>(supported);
    }
    bool get_direct_write_to_pmem() const {
        return detail::get<rpma_peer_cfg_get_direct_write_to_pmem>(get());
    }
    peer_cfg &set_served_by(const rpma_peer *peer) {
        return set<rpma_peer_cfg_set_served_by>(peer);
    }
    // std::nullopt if the configuration does not contain it.
    std::optional<served> get_served() const {
        bool is_stated;
        served what;
        detail::call<rpma_peer_cfg_get_served>(get(), &is_stated, &what.flush,
                                               &what.atomic_write);
        return is_stated ? std::optional(what) : std::nullopt;
    }
    std::vector<std::byte> get_descriptor() const {
        std::vector<std::byte> bytes(detail::get<rpma_peer_cfg_get_descriptor_size>(get()));
        detail::call<rpma_peer_cfg_get_descriptor>(get(), bytes.data());
        return bytes;
    }
};

// ---- memory regions ----------------------------------------------------------------------

class mr_local : public detail::owner<detail::ref<rpma_mr_local>, rpma_mr_dereg> {
  public:
    using owner::owner;
    mr_local(rpma_peer *peer, void *ptr, std::size_t size, int usage)
        : owner(detail::get<rpma_mr_reg>(peer, ptr, size, usage)) {}

    void *get_ptr() const { return detail::get<rpma_mr_get_ptr>(get()); }
    std::size_t get_size() const { return detail::get<rpma_mr_get_size>(get()); }
    ibv_mr *get_ibv_mr() const { return detail::get<rpma_mr_get_ibv_mr>(get()); }
    std::vector<std::byte> get_descriptor() const {
        std::vector<std::byte> bytes(detail::get<rpma_mr_get_descriptor_size>(get()));
        detail::call<rpma_mr_get_descriptor>(get(), bytes.data());
        return bytes;
    }
    void advise(std::size_t offset, std::size_t len, int advice, uint32_t flags) {
        detail::call<rpma_mr_advise>(get(), offset, len, advice, flags);
    }
};

class mr_remote : public detail::owner<detail::ref<rpma_mr_remote>, rpma_mr_remote_delete> {
  public:
    struct key {
        uint64_t addr;
        uint32_t rkey;
    };

    using owner::owner;
    explicit mr_remote(std::span<const std::byte> descriptor) {
        detail::call<rpma_mr_remote_from_descriptor>(descriptor.data(), descriptor.size(),
                                                     &handle_);
    }

    std::size_t get_size() const { return detail::get<rpma_mr_remote_get_size>(get()); }
    int get_flush_type() const { return detail::get<rpma_mr_remote_get_flush_type>(get()); }
    key get_key() const {
        key found;
        detail::call<rpma_mr_remote_get_key>(get(), &found.addr, &found.rkey);
        return found;
    }
};

// ---- completion queues -------------------------------------------------------------------

// A completion queue with another owner: a connection, a shared receive queue, rpma::cq.
class cq_ref : public detail::ref<rpma_cq> {
  public:
    using ref::ref;

    int get_fd() const { return detail::get<rpma_cq_get_fd>(handle_); }
    ibv_cq *get_ibv_cq() const { return detail::get<rpma_cq_get_ibv_cq>(handle_); }

    void set_moderation(uint32_t count, uint32_t period_us) {
        detail::call<rpma_cq_set_moderation>(handle_, count, period_us);
    }

    status wait() noexcept { return status(rpma_cq_wait(handle_)); }
    status take_event() noexcept { return status(rpma_cq_take_event(handle_)); }
    status arm(bool solicited_only) noexcept {
        return status(rpma_cq_arm(handle_, solicited_only));
    }
    // Takes one completion.
    status get_wc(ibv_wc &wc) noexcept {
        return polled(rpma_cq_get_wc(handle_, 1, &wc, nullptr));
    }
    // Takes completions into room, of at most INT_MAX elements; taken is the part of room that
    // was filled, and empty if the call fails.
    status get_wc(std::span<ibv_wc> room, std::span<ibv_wc> &taken) noexcept {
        int got;
        const int ret =
            rpma_cq_get_wc(handle_, static_cast<int>(room.size()), room.data(), &got);
        taken = room.first(ret == 0 ? static_cast<std::size_t>(got) : 0);
        return polled(ret);
    }

  private:
    // ibv_poll_cq() returns no error number, so errno holds one of an earlier call. The first
    // comparisons are those of a caller, so that the compiler merges them.
    static status polled(int ret) noexcept {
        if (ret != 0 && ret != RPMA_E_NO_COMPLETION) [[unlikely]] {
            if (ret == RPMA_E_PROVIDER)
                errno = 0;
        }
        return status(ret);
    }

    friend class conn; // it writes the queue that is ready
};

class cq_cfg : public detail::config<cq_cfg, rpma_cq_cfg, rpma_cq_cfg_delete> {
  public:
    using config::config;
    cq_cfg() : config(detail::get<rpma_cq_cfg_new>()) {}

    cq_cfg &set_size(uint32_t size) { return set<rpma_cq_cfg_set_size>(size); }
    uint32_t get_size() const { return detail::get<rpma_cq_cfg_get_size>(get()); }
    cq_cfg &set_comp_vector(uint32_t comp_vector) {
        return set<rpma_cq_cfg_set_comp_vector>(comp_vector);
    }
    uint32_t get_comp_vector() const { return detail::get<rpma_cq_cfg_get_comp_vector>(get()); }
};

class cq : public detail::owner<cq_ref, rpma_cq_delete> {
  public:
    using owner::owner;
    explicit cq(rpma_peer *peer, const rpma_cq_cfg *cfg = nullptr)
        : owner(detail::get<rpma_cq_new>(peer, cfg)) {}
};

// ---- shared receive queue ----------------------------------------------------------------

class srq_cfg : public detail::config<srq_cfg, rpma_srq_cfg, rpma_srq_cfg_delete> {
  public:
    using config::config;
    srq_cfg() : config(detail::get<rpma_srq_cfg_new>()) {}

    srq_cfg &set_rq_size(uint32_t rq_size) { return set<rpma_srq_cfg_set_rq_size>(rq_size); }
    uint32_t get_rq_size() const { return detail::get<rpma_srq_cfg_get_rq_size>(get()); }
    srq_cfg &set_rcq_size(uint32_t rcq_size) {
        return set<rpma_srq_cfg_set_rcq_size>(rcq_size);
    }
    uint32_t get_rcq_size() const { return detail::get<rpma_srq_cfg_get_rcq_size>(get()); }
    srq_cfg &set_max_sge(uint32_t max_sge) { return set<rpma_srq_cfg_set_max_sge>(max_sge); }
    uint32_t get_max_sge() const { return detail::get<rpma_srq_cfg_get_max_sge>(get()); }
};

class srq : public detail::owner<detail::ref<rpma_srq>, rpma_srq_delete> {
  public:
    using owner::owner;
    explicit srq(rpma_peer *peer, rpma_srq_cfg *cfg = nullptr)
        : owner(detail::get<rpma_srq_new>(peer, cfg)) {}

    // Its get() returns nullptr if the queue has none.
    cq_ref get_rcq() const { return cq_ref(detail::get<rpma_srq_get_rcq>(get())); }
    void set_limit(uint32_t limit) { detail::call<rpma_srq_set_limit>(get(), limit); }

    status recv(rpma_mr_local *dst, std::size_t offset, std::size_t len,
                const void *op_context = nullptr) noexcept {
        return status(rpma_srq_recv(handle_, dst, offset, len, op_context));
    }
    status recv_many(std::span<const rpma_receive> receives,
                     uint32_t *posted = nullptr) noexcept {
        return status(rpma_srq_recv_many(handle_, receives.data(),
                                         static_cast<uint32_t>(receives.size()), posted));
    }
};

// ---- connection configuration ------------------------------------------------------------

class conn_cfg : public detail::config<conn_cfg, rpma_conn_cfg, rpma_conn_cfg_delete> {
  public:
    using config::config;
    conn_cfg() : config(detail::get<rpma_conn_cfg_new>()) {}

    conn_cfg &set_timeout(int timeout_ms) { return set<rpma_conn_cfg_set_timeout>(timeout_ms); }
    int get_timeout() const { return detail::get<rpma_conn_cfg_get_timeout>(get()); }
    conn_cfg &set_cq_size(uint32_t cq_size) { return set<rpma_conn_cfg_set_cq_size>(cq_size); }
    uint32_t get_cq_size() const { return detail::get<rpma_conn_cfg_get_cq_size>(get()); }
    conn_cfg &set_rcq_size(uint32_t rcq_size) {
        return set<rpma_conn_cfg_set_rcq_size>(rcq_size);
    }
    uint32_t get_rcq_size() const { return detail::get<rpma_conn_cfg_get_rcq_size>(get()); }
    conn_cfg &set_sq_size(uint32_t sq_size) { return set<rpma_conn_cfg_set_sq_size>(sq_size); }
    uint32_t get_sq_size() const { return detail::get<rpma_conn_cfg_get_sq_size>(get()); }
    conn_cfg &set_rq_size(uint32_t rq_size) { return set<rpma_conn_cfg_set_rq_size>(rq_size); }
    uint32_t get_rq_size() const { return detail::get<rpma_conn_cfg_get_rq_size>(get()); }
    conn_cfg &set_max_sge(uint32_t max_sge) { return set<rpma_conn_cfg_set_max_sge>(max_sge); }
    uint32_t get_max_sge() const { return detail::get<rpma_conn_cfg_get_max_sge>(get()); }
    conn_cfg &set_ack_timeout(int timeout_ms) {
        return set<rpma_conn_cfg_set_ack_timeout>(timeout_ms);
    }
    int get_ack_timeout() const { return detail::get<rpma_conn_cfg_get_ack_timeout>(get()); }
    conn_cfg &set_retry_count(uint32_t retry_count) {
        return set<rpma_conn_cfg_set_retry_count>(retry_count);
    }
    uint32_t get_retry_count() const {
        return detail::get<rpma_conn_cfg_get_retry_count>(get());
    }
    conn_cfg &set_rnr_retry_count(uint32_t rnr_retry_count) {
        return set<rpma_conn_cfg_set_rnr_retry_count>(rnr_retry_count);
    }
    uint32_t get_rnr_retry_count() const {
        return detail::get<rpma_conn_cfg_get_rnr_retry_count>(get());
    }
    conn_cfg &set_rnr_timer(int timeout_ms) {
        return set<rpma_conn_cfg_set_rnr_timer>(timeout_ms);
    }
    int get_rnr_timer() const { return detail::get<rpma_conn_cfg_get_rnr_timer>(get()); }
    conn_cfg &set_tos(uint8_t tos) { return set<rpma_conn_cfg_set_tos>(tos); }
    uint8_t get_tos() const { return detail::get<rpma_conn_cfg_get_tos>(get()); }
    conn_cfg &set_flush_mode(rpma_flush_mode mode) {
        return set<rpma_conn_cfg_set_flush_mode>(mode);
    }
    rpma_flush_mode get_flush_mode() const {
        return detail::get<rpma_conn_cfg_get_flush_mode>(get());
    }
    conn_cfg &set_inline_size(uint32_t inline_size) {
        return set<rpma_conn_cfg_set_inline_size>(inline_size);
    }
    uint32_t get_inline_size() const {
        return detail::get<rpma_conn_cfg_get_inline_size>(get());
    }
    conn_cfg &set_compl_channel(bool shared) {
        return set<rpma_conn_cfg_set_compl_channel>(shared);
    }
    bool get_compl_channel() const {
        return detail::get<rpma_conn_cfg_get_compl_channel>(get());
    }
    conn_cfg &set_source_addr(const char *addr) {
        return set<rpma_conn_cfg_set_source_addr>(addr);
    }
    sockaddr_storage get_source_addr() const {
        return detail::get<rpma_conn_cfg_get_source_addr>(get());
    }
    conn_cfg &set_source_port(uint32_t port) {
        return set<rpma_conn_cfg_set_source_port>(port);
    }
    uint32_t get_source_port() const {
        return detail::get<rpma_conn_cfg_get_source_port>(get());
    }
    // These borrow the queue; nullptr: no queue.
    conn_cfg &set_srq(rpma_srq *srq) { return set<rpma_conn_cfg_set_srq>(srq); }
    rpma_srq *get_srq() const { return detail::get<rpma_conn_cfg_get_srq>(get()); }
    conn_cfg &set_cq(rpma_cq *cq) { return set<rpma_conn_cfg_set_cq>(cq); }
    cq_ref get_cq() const { return cq_ref(detail::get<rpma_conn_cfg_get_cq>(get())); }
    conn_cfg &set_rcq(rpma_cq *rcq) { return set<rpma_conn_cfg_set_rcq>(rcq); }
    cq_ref get_rcq() const { return cq_ref(detail::get<rpma_conn_cfg_get_rcq>(get())); }
};

// ---- connections -------------------------------------------------------------------------

class conn : public detail::owner<detail::ref<rpma_conn>, rpma_conn_delete> {
  public:
    using owner::owner;

    // std::nullopt: no event is available now, on a descriptor with O_NONBLOCK, or, on any
    // descriptor, the link address of this side has changed, which does not end the connection:
    // call again.
    std::optional<rpma_conn_event> next_event() {
        rpma_conn_event event;
        if (!detail::call<rpma_conn_next_event, status::no_event>(get(), &event))
            return std::nullopt;
        return event;
    }
    int get_event_fd() const { return detail::get<rpma_conn_get_event_fd>(get()); }
    std::span<const std::byte> get_private_data() const {
        const auto data = detail::get<rpma_conn_get_private_data>(get());
        return detail::bytes_of(data.ptr, data.len);
    }
    void apply_remote_peer_cfg(const rpma_peer_cfg *pcfg) {
        detail::call<rpma_conn_apply_remote_peer_cfg>(get(), pcfg);
    }
    void disconnect() { detail::call<rpma_conn_disconnect>(get()); }

    sockaddr_storage get_local_addr() const {
        return detail::get<rpma_conn_get_local_addr>(get());
    }
    sockaddr_storage get_peer_addr() const {
        return detail::get<rpma_conn_get_peer_addr>(get());
    }
    uint32_t get_qp_num() const { return detail::get<rpma_conn_get_qp_num>(get()); }
    rpma_flush_mode get_flush_mode() const {
        return detail::get<rpma_conn_get_flush_mode>(get());
    }
    ibv_qp *get_ibv_qp() const { return detail::get<rpma_conn_get_ibv_qp>(get()); }
    cq_ref get_cq() const { return cq_ref(detail::get<rpma_conn_get_cq>(get())); }
    // Its get() returns nullptr if the connection has none.
    cq_ref get_rcq() const { return cq_ref(detail::get<rpma_conn_get_rcq>(get())); }
    int get_compl_fd() const { return detail::get<rpma_conn_get_compl_fd>(get()); }

    status wait(cq_ref &ready, bool *is_rcq = nullptr) noexcept {
        return status(rpma_conn_wait(handle_, 0, &ready.handle_, is_rcq));
    }
    status read(rpma_mr_local *dst, std::size_t dst_offset, const rpma_mr_remote *src,
                std::size_t src_offset, std::size_t len, int flags,
                const void *op_context = nullptr) noexcept {
        return status(
            rpma_read(handle_, dst, dst_offset, src, src_offset, len, flags, op_context));
    }
    status write(rpma_mr_remote *dst, std::size_t dst_offset, const rpma_mr_local *src,
                 std::size_t src_offset, std::size_t len, int flags,
                 const void *op_context = nullptr) noexcept {
        return status(
            rpma_write(handle_, dst, dst_offset, src, src_offset, len, flags, op_context));
    }
    status write_with_imm(rpma_mr_remote *dst, std::size_t dst_offset, const rpma_mr_local *src,
                          std::size_t src_offset, std::size_t len, int flags, uint32_t imm,
                          const void *op_context = nullptr) noexcept {
        return status(rpma_write_with_imm(handle_, dst, dst_offset, src, src_offset, len, flags,
                                          imm, op_context));
    }
    status atomic_write(rpma_mr_remote *dst, std::size_t dst_offset,
                        std::span<const char, RPMA_ATOMIC_WRITE_ALIGNMENT> src, int flags,
                        const void *op_context = nullptr) noexcept {
        return status(
            rpma_atomic_write(handle_, dst, dst_offset, src.data(), flags, op_context));
    }
    status flush(rpma_mr_remote *dst, std::size_t dst_offset, std::size_t len,
                 rpma_flush_type type, int flags, const void *op_context = nullptr) noexcept {
        return status(rpma_flush(handle_, dst, dst_offset, len, type, flags, op_context));
    }
    status send(const rpma_mr_local *src, std::size_t offset, std::size_t len, int flags,
                const void *op_context = nullptr) noexcept {
        return status(rpma_send(handle_, src, offset, len, flags, op_context));
    }
    status send_with_imm(const rpma_mr_local *src, std::size_t offset, std::size_t len,
                         int flags, uint32_t imm, const void *op_context = nullptr) noexcept {
        return status(rpma_send_with_imm(handle_, src, offset, len, flags, imm, op_context));
    }
    status recv(rpma_mr_local *dst, std::size_t offset, std::size_t len,
                const void *op_context = nullptr) noexcept {
        return status(rpma_recv(handle_, dst, offset, len, op_context));
    }
    // Here and in all functions that post a span: at most UINT32_MAX elements.
    status recv_many(std::span<const rpma_receive> receives,
                     uint32_t *posted = nullptr) noexcept {
        return status(rpma_recv_many(handle_, receives.data(),
                                     static_cast<uint32_t>(receives.size()), posted));
    }
    status post(std::span<const rpma_work> works, uint32_t *posted = nullptr) noexcept {
        return status(
            rpma_post(handle_, works.data(), static_cast<uint32_t>(works.size()), posted));
    }
};

// A request that was not connected is deleted; an incoming one is rejected first.
class conn_req : public detail::owner<detail::ref<rpma_conn_req>, rpma_conn_req_delete> {
  public:
    using owner::owner;
    conn_req(rpma_peer *peer, const char *addr, const char *port,
             const rpma_conn_cfg *cfg = nullptr)
        : owner(detail::get<rpma_conn_req_new>(peer, addr, port, cfg)) {}
    static conn_req start(rpma_peer *peer, const char *addr, const char *port,
                          const rpma_conn_cfg *cfg = nullptr) {
        return conn_req(detail::get<rpma_conn_req_start>(peer, addr, port, cfg));
    }

    int get_event_fd() const { return detail::get<rpma_conn_req_get_event_fd>(get()); }
    // Returns true if the request is ready to be set up, false if it is not ready yet.
    bool resolve() { return detail::call<rpma_conn_req_resolve, status::again>(get()); }
    void setup(const rpma_conn_cfg *cfg = nullptr) {
        detail::call<rpma_conn_req_setup>(get(), cfg);
    }

    std::span<const std::byte> get_private_data() const {
        const auto data = detail::get<rpma_conn_req_get_private_data>(get());
        return detail::bytes_of(data.ptr, data.len);
    }
    sockaddr_storage get_local_addr() const {
        return detail::get<rpma_conn_req_get_local_addr>(get());
    }
    sockaddr_storage get_peer_addr() const {
        return detail::get<rpma_conn_req_get_peer_addr>(get());
    }
    status recv(rpma_mr_local *dst, std::size_t offset, std::size_t len,
                const void *op_context = nullptr) noexcept {
        return status(rpma_conn_req_recv(handle_, dst, offset, len, op_context));
    }
    status recv_many(std::span<const rpma_receive> receives,
                     uint32_t *posted = nullptr) noexcept {
        return status(rpma_conn_req_recv_many(handle_, receives.data(),
                                              static_cast<uint32_t>(receives.size()), posted));
    }
    // Consumes the request even if it throws: std::move(request).connect().
    conn connect(std::span<const std::byte> private_data = {}) && {
        conn_req consumed = std::move(*this);
        const rpma_conn_private_data data = detail::private_data(private_data);
        rpma_conn *made = nullptr;
        detail::call<rpma_conn_req_connect>(&consumed.handle_,
                                            private_data.empty() ? nullptr : &data, &made);
        return conn(made);
    }
    // Consumes the request even if it throws; only an incoming one can be rejected.
    void reject(std::span<const std::byte> private_data = {}) && {
        conn_req consumed = std::move(*this);
        const rpma_conn_private_data data = detail::private_data(private_data);
        detail::call<rpma_conn_req_reject>(&consumed.handle_,
                                           private_data.empty() ? nullptr : &data);
    }
};

class ep_cfg : public detail::config<ep_cfg, rpma_ep_cfg, rpma_ep_cfg_delete> {
  public:
    using config::config;
    ep_cfg() : config(detail::get<rpma_ep_cfg_new>()) {}

    ep_cfg &set_backlog(uint32_t backlog) { return set<rpma_ep_cfg_set_backlog>(backlog); }
    uint32_t get_backlog() const { return detail::get<rpma_ep_cfg_get_backlog>(get()); }
    ep_cfg &set_ipv6_only(bool ipv6_only) { return set<rpma_ep_cfg_set_ipv6_only>(ipv6_only); }
    bool get_ipv6_only() const { return detail::get<rpma_ep_cfg_get_ipv6_only>(get()); }
};

class ep : public detail::owner<detail::ref<rpma_ep>, rpma_ep_shutdown> {
  public:
    using owner::owner;
    ep(rpma_peer *peer, const char *addr, const char *port)
        : owner(detail::get<rpma_ep_listen>(peer, addr, port)) {}
    ep(rpma_peer *peer, const char *addr, const char *port, const rpma_ep_cfg *cfg)
        : owner(detail::get<rpma_ep_listen_with>(peer, addr, port, cfg)) {}

    int get_fd() const { return detail::get<rpma_ep_get_fd>(get()); }
    sockaddr_storage get_addr() const { return detail::get<rpma_ep_get_addr>(get()); }
    // These own nothing if no request is pending, on a descriptor with O_NONBLOCK, or, on any
    // descriptor, if the link address of this side has changed: call again.
    conn_req next_incoming() {
        rpma_conn_req *taken = nullptr;
        detail::call<rpma_ep_next_incoming, status::no_event>(get(), &taken);
        return conn_req(taken);
    }
    conn_req next_conn_req(const rpma_conn_cfg *cfg = nullptr) {
        rpma_conn_req *taken = nullptr;
        detail::call<rpma_ep_next_conn_req, status::no_event>(get(), cfg, &taken);
        return conn_req(taken);
    }
};

// ---- private data ------------------------------------------------------------------------

// The output of rpma_conn_private_data_pack(): bytes for conn_req::connect().
class packed {
  public:
    packed(std::span<const rpma_mr_local *const> mrs, const rpma_peer_cfg *pcfg = nullptr,
           std::span<const std::byte> bytes = {}) {
        rpma_conn_private_data data = {bytes_.data(), UINT8_MAX};
        detail::call<rpma_conn_private_data_pack>(mrs.data(), size_of(mrs), pcfg,
                                                  static_cast<const void *>(bytes.data()),
                                                  size_of(bytes), &data);
        len_ = data.len;
    }
    packed(std::initializer_list<const rpma_mr_local *> mrs,
           const rpma_peer_cfg *pcfg = nullptr, std::span<const std::byte> bytes = {})
        : packed(std::span(mrs.begin(), mrs.size()), pcfg, bytes) {}

    operator std::span<const std::byte>() const noexcept { return {bytes_.data(), len_}; }

  private:
    // The library rejects UINT32_MAX.
    template <class Range> static uint32_t size_of(const Range &range) noexcept {
        return range.size() < UINT32_MAX ? static_cast<uint32_t>(range.size()) : UINT32_MAX;
    }

    std::array<std::byte, UINT8_MAX> bytes_;
    std::size_t len_;
};

// The unpacked private data of the other side.
struct received {
    std::vector<mr_remote> regions;
    peer_cfg pcfg;                    // owns nothing if no configuration was packed
    std::span<const std::byte> bytes; // of the other program, inside of the unpacked data
};

// rpma_conn_private_data_unpack(): throws if the data is not of this format.
inline received unpack(std::span<const std::byte> packed) {
    const rpma_conn_private_data data = detail::private_data(packed);
    uint32_t count = 0;
    detail::call<rpma_conn_private_data_unpack>(&data, nullptr, &count, nullptr, nullptr,
                                                nullptr);
    std::vector<rpma_mr_remote *> handles(count);
    received found{{}, peer_cfg(nullptr), {}};
    found.regions.reserve(count);
    rpma_peer_cfg *pcfg = nullptr;
    const void *bytes = nullptr;
    uint32_t len = 0;
    detail::call<rpma_conn_private_data_unpack>(&data, handles.data(), &count, &pcfg, &bytes,
                                                &len);
    for (rpma_mr_remote *handle : handles)
        found.regions.emplace_back(handle);
    found.pcfg = peer_cfg(pcfg);
    found.bytes = detail::bytes_of(bytes, len);
    return found;
}

// ---- many operations at once -------------------------------------------------------------

class batch : public detail::owner<detail::ref<rpma_batch>, rpma_batch_delete> {
  public:
    using owner::owner;
    batch(rpma_conn *conn, uint32_t max_ops)
        : owner(detail::get<rpma_batch_new>(conn, max_ops)) {}

    status add(const rpma_work &work) noexcept {
        return status(rpma_batch_add(handle_, &work));
    }
    status set(uint32_t index, const rpma_work &work) noexcept {
        return status(rpma_batch_set(handle_, index, &work));
    }
    status post(uint32_t *posted = nullptr) noexcept {
        return status(rpma_batch_post(handle_, posted));
    }
    status reset() noexcept { return status(rpma_batch_reset(handle_)); }
    // The number of operations in the batch, and of further ones that fit.
    uint32_t size() const {
        uint32_t size;
        detail::call<rpma_batch_get_size>(get(), &size, nullptr);
        return size;
    }
    uint32_t room() const { return detail::get<rpma_batch_get_size>(get(), nullptr); }
};

} // namespace v1
} // namespace rpma

#endif // LIBRPMA_HPP
