// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// librpma.hpp -- librpma for C++20: owners of its objects, and exceptions outside the data path
//
// rpma_cpp(7) describes it. Conventions, unless a declaration says otherwise:
// - Each class owns one object of librpma, or nothing. A member has the name of its function
//   without that of the class. It is documented in librpma.h and in section 3 of the manual:
//   rpma::conn::read() is rpma_read(), rpma::mr_local's constructor is rpma_mr_reg().
// - Functions that post, poll or wait for completions are noexcept and return a status, which
//   is [[nodiscard]]. They have the cost of the C function. All others throw rpma::error.
// - An owner converts to its handle, also as an argument of C functions and as a member of an
//   operation. A temporary owner does not convert: its handle would be deleted too early.
// - A parameter that is a reference to an owner must own an object. A parameter that is a
//   pointer to a handle may be nullptr where rpma_*(3) permits NULL.
// - An owner is moved, never copied; a moved-from one owns nothing. A destructor deletes the
//   object; if the provider refuses, the library logs the failure, and the object leaks.
//   close() does the same and throws: the owner then keeps the object if the library kept it.
// - Owners are as thread-safe as the objects that they own. Borrowed objects must outlive them.

#ifndef LIBRPMA_HPP
#define LIBRPMA_HPP 1

#if __cplusplus < 202002L
#error "librpma.hpp needs C++20: compile with -std=c++20"
#else

#include <array>
#include <cstddef>
#include <cstdint>
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

// A call that failed. code() is the RPMA_E_*. what() is the log message of the failure
// (rpma_err_last_failure()), or the name of the function and the text of the code if the log
// thresholds disabled the message.
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

// These results are not failures, so the last failure is of another call.
constexpr bool is_failure(status code) noexcept {
    return code != status::no_completion && code != status::no_event && code != status::again &&
           code != status::shared_channel && code != status::not_shared_chnl;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail(status code,
                                                        std::string_view function = {}) {
    int provider_error = 0;
    std::string text = is_failure(code) ? rpma_err_last_failure(&provider_error) : "";
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
    const auto code = static_cast<status>(function(args...));
    if (code != status::ok && code != tolerated)
        fail(code, name_of<function>());
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
    explicit ref(std::nullptr_t) = delete;
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
    explicit owner(std::nullptr_t) = delete;
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

// A copy that ends with '\0', as C functions expect it.
inline std::string terminated(std::string_view text) {
    if (text.find('\0') != text.npos)
        throw error(status::inval, 0, "an address or port contains '\\0'");
    return std::string(text);
}

inline std::span<const std::byte> bytes_of(const void *ptr, std::size_t size) noexcept {
    return {static_cast<const std::byte *>(ptr), size};
}

} // namespace detail

// Throws unless status is a success. It must be the status of this thread's latest call.
inline void check(status code) {
    if (code != status::ok) [[unlikely]]
        detail::fail(code);
}

// ---- devices -----------------------------------------------------------------------------

inline ibv_context *get_ibv_context(std::string_view addr, rpma_util_ibv_context_type type) {
    return detail::get<rpma_utils_get_ibv_context>(detail::terminated(addr).c_str(), type);
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
    peer_cfg &set_served_by(const peer &device) {
        return set<rpma_peer_cfg_set_served_by>(device.get());
    }
    // std::nullopt if the configuration does not contain it.
    std::optional<served> get_served() const {
        bool is_advertised;
        served what;
        detail::call<rpma_peer_cfg_get_served>(get(), &is_advertised, &what.flush,
                                               &what.atomic_write);
        return is_advertised ? std::optional(what) : std::nullopt;
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
    mr_local(peer &device, void *ptr, std::size_t size, int usage)
        : owner(detail::get<rpma_mr_reg>(device.get(), ptr, size, usage)) {}
    mr_local(peer &device, std::span<std::byte> memory, int usage)
        : mr_local(device, memory.data(), memory.size(), usage) {}

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

// The completions of a poll: the part of the caller's memory that was filled.
class [[nodiscard]] completions : public std::span<ibv_wc> {
  public:
    completions(std::span<ibv_wc> filled, rpma::status result) noexcept
        : span(filled), status_(result) {}

    // If it is not ok, there are no completions.
    rpma::status status() const noexcept { return status_; }

  private:
    rpma::status status_;
};

// A completion queue with another owner: a connection, a shared receive queue, rpma::cq.
class cq_ref : public detail::ref<rpma_cq> {
  public:
    using ref::ref;
    static std::optional<cq_ref> or_none(rpma_cq *handle) noexcept {
        return handle == nullptr ? std::nullopt : std::optional(cq_ref(handle));
    }

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
    // Polls one completion.
    status get_wc(ibv_wc &wc) noexcept {
        return status(rpma_cq_get_wc(handle_, 1, &wc, nullptr));
    }
    // Polls completions into room, of at most INT_MAX elements.
    completions get_wc(std::span<ibv_wc> room) noexcept {
        int taken;
        const int ret =
            rpma_cq_get_wc(handle_, static_cast<int>(room.size()), room.data(), &taken);
        return {room.first(ret == 0 ? static_cast<std::size_t>(taken) : 0), status(ret)};
    }

  private:
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
    explicit cq(peer &device, const rpma_cq_cfg *cfg = nullptr)
        : owner(detail::get<rpma_cq_new>(device.get(), cfg)) {}
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
    explicit srq(peer &device, rpma_srq_cfg *cfg = nullptr)
        : owner(detail::get<rpma_srq_new>(device.get(), cfg)) {}

    // std::nullopt if the queue has none.
    std::optional<cq_ref> get_rcq() const & {
        return cq_ref::or_none(detail::get<rpma_srq_get_rcq>(get()));
    }
    void get_rcq() const && = delete; // the queue would be deleted too early
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
    // std::nullopt: the system chooses.
    conn_cfg &set_source_addr(std::optional<std::string_view> addr) {
        const std::string copy = detail::terminated(addr.value_or(""));
        return set<rpma_conn_cfg_set_source_addr>(addr ? copy.c_str() : nullptr);
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
    std::optional<cq_ref> get_cq() const {
        return cq_ref::or_none(detail::get<rpma_conn_cfg_get_cq>(get()));
    }
    conn_cfg &set_rcq(rpma_cq *rcq) { return set<rpma_conn_cfg_set_rcq>(rcq); }
    std::optional<cq_ref> get_rcq() const {
        return cq_ref::or_none(detail::get<rpma_conn_cfg_get_rcq>(get()));
    }
};

// ---- operations --------------------------------------------------------------------------

// One SGE of local memory.
struct sge {
    const rpma_mr_local *mr = nullptr;
    std::size_t offset = 0;
    std::size_t len = 0;
};

namespace detail {

// The members that a type of operation does not have are 0.
template <class Work, class Operation> constexpr Work filled(const Operation &from) noexcept {
    Work work = {};
    work.op_context = from.op_context;
    if constexpr (requires { from.local; })
        work.local = {from.local.mr, from.local.offset, from.local.len};
    if constexpr (requires { from.sges; }) {
        work.sgl = from.sges.empty() ? nullptr : from.sges.data();
        work.nsge = static_cast<uint32_t>(from.sges.size());
    }
    return work;
}

template <class Operation>
constexpr rpma_work work_of(rpma_work_type type, const Operation &from) noexcept {
    rpma_work work = filled<rpma_work>(from);
    work.type = type;
    work.flags = from.flags;
    if constexpr (requires { from.remote; }) {
        work.remote = from.remote;
        work.remote_offset = from.remote_offset;
    }
    if constexpr (requires { from.imm; })
        work.imm = from.imm.value_or(0);
    if constexpr (requires { from.value; })
        work.value = from.value;
    return work;
}

} // namespace detail

// The operations of conn::post() and batch::add(), and recv for recv_many(). Each has the
// members of struct rpma_work that its type reads, for designated initializers; gcc
// warns if one without a default value is missing. sges: several SGEs in place of local.
struct read {
    const rpma_mr_remote *remote;
    std::size_t remote_offset = 0;
    sge local = {};
    std::span<const rpma_sge> sges = {};
    int flags;
    const void *op_context = nullptr;
    constexpr operator rpma_work() const noexcept {
        return detail::work_of(RPMA_WORK_READ, *this);
    }
};

struct write {
    const rpma_mr_remote *remote;
    std::size_t remote_offset = 0;
    sge local = {};
    std::span<const rpma_sge> sges = {};
    std::optional<uint32_t> imm = {}; // if set, it completes a receive of the other side
    int flags;
    const void *op_context = nullptr;
    constexpr operator rpma_work() const noexcept {
        return detail::work_of(imm ? RPMA_WORK_WRITE_WITH_IMM : RPMA_WORK_WRITE, *this);
    }
};

struct atomic_write {
    const rpma_mr_remote *remote;
    std::size_t remote_offset = 0;
    uint64_t value; // its 8 bytes are written in memory order
    int flags;
    const void *op_context = nullptr;
    constexpr operator rpma_work() const noexcept {
        return detail::work_of(RPMA_WORK_ATOMIC_WRITE, *this);
    }
};

struct flush {
    const rpma_mr_remote *remote;
    std::size_t remote_offset = 0;
    std::size_t len;
    rpma_flush_type type;
    int flags;
    const void *op_context = nullptr;
    constexpr operator rpma_work() const noexcept {
        rpma_work work = detail::work_of(RPMA_WORK_FLUSH, *this);
        work.flush_type = type;
        work.flush_len = len;
        return work;
    }
};

struct send {
    sge local = {};
    std::span<const rpma_sge> sges = {};
    std::optional<uint32_t> imm = {};
    int flags;
    const void *op_context = nullptr;
    constexpr operator rpma_work() const noexcept {
        return detail::work_of(imm ? RPMA_WORK_SEND_WITH_IMM : RPMA_WORK_SEND, *this);
    }
};

struct fetch_add {
    const rpma_mr_remote *remote;
    std::size_t remote_offset = 0;
    sge local; // for the old value: 8 bytes
    uint64_t value;
    int flags;
    const void *op_context = nullptr;
    constexpr operator rpma_work() const noexcept {
        return detail::work_of(RPMA_WORK_FETCH_ADD, *this);
    }
};

struct compare_swap {
    const rpma_mr_remote *remote;
    std::size_t remote_offset = 0;
    sge local; // for the old value: 8 bytes
    uint64_t compare;
    uint64_t value;
    int flags;
    const void *op_context = nullptr;
    constexpr operator rpma_work() const noexcept {
        rpma_work work = detail::work_of(RPMA_WORK_COMPARE_SWAP, *this);
        work.compare = compare;
        return work;
    }
};

struct recv {
    sge local = {};
    std::span<const rpma_sge> sges = {};
    const void *op_context = nullptr;
    constexpr operator rpma_receive() const noexcept {
        return detail::filled<rpma_receive>(*this);
    }
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
    std::span<const std::byte> get_private_data() const & {
        const auto data = detail::get<rpma_conn_get_private_data>(get());
        return detail::bytes_of(data.ptr, data.len);
    }
    void get_private_data() const && = delete; // the connection would be deleted too early
    void apply_remote_peer_cfg(const peer_cfg &pcfg) {
        detail::call<rpma_conn_apply_remote_peer_cfg>(get(), pcfg.get());
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
    cq_ref get_cq() const & { return cq_ref(detail::get<rpma_conn_get_cq>(get())); }
    void get_cq() const && = delete;
    // std::nullopt if the connection has none.
    std::optional<cq_ref> get_rcq() const & {
        return cq_ref::or_none(detail::get<rpma_conn_get_rcq>(get()));
    }
    void get_rcq() const && = delete;
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
    status post(std::initializer_list<rpma_work> works, uint32_t *posted = nullptr) noexcept {
        return post(std::span(works.begin(), works.size()), posted);
    }
};

// A request that was not connected is deleted; an incoming one is rejected first.
class conn_req : public detail::owner<detail::ref<rpma_conn_req>, rpma_conn_req_delete> {
  public:
    using owner::owner;
    conn_req(peer &device, std::string_view addr, std::string_view port,
             const rpma_conn_cfg *cfg = nullptr)
        : owner(made_by<rpma_conn_req_new>(device, addr, port, cfg)) {}
    static conn_req start(peer &device, std::string_view addr, std::string_view port,
                          const rpma_conn_cfg *cfg = nullptr) {
        return conn_req(made_by<rpma_conn_req_start>(device, addr, port, cfg));
    }

    int get_event_fd() const { return detail::get<rpma_conn_req_get_event_fd>(get()); }
    // Returns true if the request is ready to be set up, false if it is not ready yet.
    bool resolve() { return detail::call<rpma_conn_req_resolve, status::again>(get()); }
    void setup(const rpma_conn_cfg *cfg = nullptr) {
        detail::call<rpma_conn_req_setup>(get(), cfg);
    }

    std::span<const std::byte> get_private_data() const & {
        const auto data = detail::get<rpma_conn_req_get_private_data>(get());
        return detail::bytes_of(data.ptr, data.len);
    }
    void get_private_data() const && = delete; // the request would be deleted too early
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

  private:
    template <auto function>
    static rpma_conn_req *made_by(peer &device, std::string_view addr, std::string_view port,
                                  const rpma_conn_cfg *cfg) {
        return detail::get<function>(device.get(), detail::terminated(addr).c_str(),
                                     detail::terminated(port).c_str(), cfg);
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
    ep(peer &device, std::string_view addr, std::string_view port,
       const rpma_ep_cfg *cfg = nullptr)
        : owner(detail::get<rpma_ep_listen_with>(device.get(), detail::terminated(addr).c_str(),
                                                 detail::terminated(port).c_str(), cfg)) {}

    int get_fd() const { return detail::get<rpma_ep_get_fd>(get()); }
    sockaddr_storage get_addr() const { return detail::get<rpma_ep_get_addr>(get()); }
    // std::nullopt: no request is pending, on a descriptor with O_NONBLOCK, or, on any
    // descriptor, the link address of this side has changed: call again.
    std::optional<conn_req> next_incoming() { return next<rpma_ep_next_incoming>(); }
    std::optional<conn_req> next_conn_req(const rpma_conn_cfg *cfg = nullptr) {
        return next<rpma_ep_next_conn_req>(cfg);
    }

  private:
    template <auto function, class... Args> std::optional<conn_req> next(Args... args) {
        rpma_conn_req *taken;
        if (!detail::call<function, status::no_event>(get(), args..., &taken))
            return std::nullopt;
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
    std::optional<peer_cfg> pcfg;     // if a configuration was packed
    std::span<const std::byte> bytes; // of the other program, inside of the unpacked data
};

// rpma_conn_private_data_unpack(): throws if the data is not of this format.
inline received unpack(std::span<const std::byte> packed) {
    const rpma_conn_private_data data = detail::private_data(packed);
    uint32_t count = 0;
    detail::call<rpma_conn_private_data_unpack>(&data, nullptr, &count, nullptr, nullptr,
                                                nullptr);
    std::vector<rpma_mr_remote *> handles(count);
    received found;
    found.regions.reserve(count);
    rpma_peer_cfg *pcfg = nullptr;
    const void *bytes = nullptr;
    uint32_t len = 0;
    detail::call<rpma_conn_private_data_unpack>(&data, handles.data(), &count, &pcfg, &bytes,
                                                &len);
    for (rpma_mr_remote *handle : handles)
        found.regions.emplace_back(handle);
    if (pcfg != nullptr)
        found.pcfg.emplace(pcfg);
    found.bytes = detail::bytes_of(bytes, len);
    return found;
}

// ---- many operations at once -------------------------------------------------------------

class batch : public detail::owner<detail::ref<rpma_batch>, rpma_batch_delete> {
  public:
    using owner::owner;
    batch(conn &of, uint32_t max_ops) : owner(detail::get<rpma_batch_new>(of.get(), max_ops)) {}

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

#endif // C++20
#endif // LIBRPMA_HPP
