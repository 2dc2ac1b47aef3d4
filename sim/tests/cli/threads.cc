// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// threads.cc -- programs with threads, one for each name; those that begin with "wrong-" have a
// mistake that some schedules show

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <shared_mutex>
#include <thread>
#include <threads.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace std::chrono_literals;

int count; // protected by what a program uses

template <class Function> void run_twice(Function function) {
    std::thread one(function), other(function);
    one.join();
    other.join();
}

int mutex() {
    std::mutex mutex;
    run_twice([&] {
        for (int i = 0; i < 3; i++) {
            const std::lock_guard locked(mutex);
            count++;
        }
    });
    return count != 6;
}

// A thread that repeats this has the same registers and the same memory again, but its locks
// are taken meanwhile.
class SpinLock {
  public:
    [[gnu::noinline]] void lock() {
        while (is_taken_.exchange(true))
            sched_yield();
    }
    [[gnu::noinline]] void unlock() { is_taken_ = false; }

  private:
    std::atomic<bool> is_taken_ = false;
};

int poll_under_locks() {
    SpinLock one, other;
    bool is_set = false;
    std::thread thread([&] {
        for (bool ends = false; !ends;) {
            one.lock();
            ends = is_set;
            one.unlock();
            other.lock();
            other.unlock();
        }
    });
    std::this_thread::sleep_for(1ms);
    for (int i = 0; i < 3; i++) {
        other.lock();
        std::this_thread::sleep_for(1ms);
        other.unlock();
        std::this_thread::sleep_for(1ms);
    }
    one.lock();
    is_set = true;
    one.unlock();
    thread.join();
    return 0;
}

// Each instruction of the loop has other registers for each word.
int poll_in_turn() {
    std::atomic<int> words[5] = {};
    std::thread thread([&] {
        for (unsigned i = 0; words[i] == 0;)
            i = (i + 1) % 5;
    });
    std::this_thread::sleep_for(1ms);
    words[3] = 1;
    thread.join();
    return 0;
}

// Reads and writes under a lock, but not under the same.
int wrong_update() {
    std::mutex mutex;
    run_twice([&] {
        mutex.lock();
        const int before = count;
        mutex.unlock();
        const std::lock_guard locked(mutex);
        count = before + 1;
    });
    return count != 2;
}

int wrong_order() {
    std::mutex one, other;
    std::thread thread([&] {
        const std::lock_guard first(other);
        const std::lock_guard second(one);
    });
    {
        const std::lock_guard first(one);
        const std::lock_guard second(other);
    }
    thread.join();
    return 0;
}

int condition(bool is_wrong) {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_set = false;
    std::thread thread([&] {
        std::unique_lock locked(mutex);
        if (is_wrong && !is_set) {
            locked.unlock(); // the notification may come now
            locked.lock();
            changed.wait(locked);
        }
        changed.wait(locked, [&] { return is_set; });
    });
    {
        const std::lock_guard locked(mutex);
        is_set = true;
    }
    changed.notify_one();
    thread.join();
    return 0;
}

int timeout() {
    std::mutex mutex;
    std::condition_variable changed;
    std::timed_mutex timed;
    sem_t semaphore;
    std::unique_lock locked(mutex);
    const auto begin = std::chrono::steady_clock::now();
    const auto status = changed.wait_for(locked, 100s);
    timespec time;
    timespec_get(&time, TIME_UTC);
    time.tv_sec += 100;
    sem_init(&semaphore, 0, 0);
    const bool has_taken = sem_timedwait(&semaphore, &time) == 0;
    timed.lock();
    std::thread([&] { count = timed.try_lock_for(100s); }).join();
    const auto passed = std::chrono::steady_clock::now() - begin;
    return status != std::cv_status::timeout || has_taken || count != 0 || passed < 300s ||
           passed > 310s;
}

int atomic_wait() {
    std::atomic<int> word = 0;
    std::thread thread([&] { word.wait(0); });
    word = 1;
    word.notify_all();
    thread.join();
    std::promise<int> promise;
    std::thread other([&] { promise.set_value(7); });
    const int value = promise.get_future().get();
    other.join();
    return value != 7;
}

int barrier() {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, nullptr, 2);
    std::atomic<int> serial = 0;
    std::atomic<int> arrived = 0;
    run_twice([&] {
        arrived++;
        serial += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
        if (arrived != 2)
            _Exit(1);
    });
    std::barrier other(2);
    run_twice([&] { other.arrive_and_wait(); });
    return serial != 1;
}

// A loop in memory, without and with calls.
int spin() {
    std::atomic<int> word = 0;
    std::thread thread([&] {
        while (word == 0)
            ;
        while (word == 1)
            sched_yield();
    });
    std::this_thread::sleep_for(1ms);
    word = 1;
    std::this_thread::sleep_for(1ms);
    word = 2;
    thread.join();
    return 0;
}

int locks() {
    std::shared_mutex shared;
    pthread_spinlock_t fast;
    std::once_flag once;
    std::atomic<int> calls = 0;
    pthread_spin_init(&fast, 0);
    run_twice([&] {
        std::call_once(once, [&] { calls++; });
        {
            const std::shared_lock locked(shared);
            if (count < 0)
                _Exit(1);
        }
        const std::lock_guard locked(shared);
        pthread_spin_lock(&fast);
        count++;
        pthread_spin_unlock(&fast);
    });
    return count != 2 || calls != 1;
}

int c11() {
    static mtx_t mutex;
    static cnd_t changed;
    thrd_t thread;
    int result = 0;
    mtx_init(&mutex, mtx_plain);
    cnd_init(&changed);
    const auto function = [](void *) {
        mtx_lock(&mutex);
        count = 1;
        cnd_signal(&changed);
        mtx_unlock(&mutex);
        return 5;
    };
    thrd_create(&thread, function, nullptr);
    mtx_lock(&mutex);
    while (count == 0)
        cnd_wait(&changed, &mutex);
    mtx_unlock(&mutex);
    thrd_join(thread, &result);
    return result != 5;
}

int cancel() {
    pthread_t thread;
    void *result;
    pthread_create(
        &thread, nullptr,
        [](void *) -> void * {
            pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
            pthread_cond_t never = PTHREAD_COND_INITIALIZER;
            pthread_mutex_lock(&mutex);
            pthread_cond_wait(&never, &mutex);
            return nullptr;
        },
        nullptr);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    return result != PTHREAD_CANCELED;
}

int processors() {
    return std::thread::hardware_concurrency() != 4;
}

// Releases an object, and uses it afterwards, although another thread may have freed it.
template <class Release, class Acquire> int wrong_release(Release release, Acquire acquire) {
    volatile bool is_freed = false, has_failed = false;
    std::thread thread([&] {
        release();
        has_failed = is_freed;
    });
    acquire();
    is_freed = true;
    thread.join();
    return has_failed;
}

int wrong_unlock() {
    std::mutex mutex;
    bool is_done = false;
    return wrong_release(
        [&] {
            const std::lock_guard locked(mutex);
            is_done = true;
        },
        [&] {
            for (;; sched_yield()) {
                const std::lock_guard locked(mutex);
                if (is_done)
                    return;
            }
        });
}

int wrong_post() {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    return wrong_release([&] { sem_post(&semaphore); }, [&] { sem_wait(&semaphore); });
}

int wrong_signal() {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    volatile bool is_set = false;
    return wrong_release(
        [&] {
            is_set = true;
            pthread_cond_signal(&changed);
        },
        [&] {
            timespec time;
            timespec_get(&time, TIME_UTC);
            time.tv_sec++; // the signal may come before
            pthread_mutex_lock(&mutex);
            if (!is_set)
                pthread_cond_timedwait(&changed, &mutex, &time);
            pthread_mutex_unlock(&mutex);
        });
}

int wrong_wake() {
    std::atomic<int> word = 0;
    return wrong_release(
        [&] {
            std::this_thread::sleep_for(1ms); // the other one waits by then
            word = 1;
            word.notify_one();
        },
        [&] { word.wait(0); });
}

int wrong_write() {
    int ends[2];
    char byte = 0;
    if (pipe(ends) != 0)
        return 2;
    return wrong_release([&] { (void)!write(ends[1], &byte, 1); },
                         [&] { (void)!read(ends[0], &byte, 1); });
}

// As rping of rdma-core 44: the thread, which is not joined, reads the pipe again, and fails if
// the program has closed it. Later, the process ends while the thread waits.
int end(bool is_wrong, void (*end_process)(int)) {
    static int ends[2];
    static sem_t has_read;
    sem_init(&has_read, 0, 0);
    if (pipe(ends) != 0)
        return 2;
    std::thread thread([] {
        char byte;
        while (read(ends[0], &byte, 1) == 1 && byte != 'e')
            sem_post(&has_read);
        if (byte != 'e')
            _Exit(1);
    });
    (void)!write(ends[1], "", 1);
    sem_wait(&has_read);
    if (!is_wrong)
        (void)!write(ends[1], "e", 1), thread.join();
    else
        thread.detach();
    close(ends[0]);
    end_process(0);
    return 0;
}

// The last thread ends the program.
int detach() {
    std::thread([] { std::this_thread::sleep_for(1s); }).detach();
    pthread_exit(nullptr);
}

constexpr struct {
    const char *name;
    int (*function)();
} PROGRAMS[] = {{"mutex", mutex},
                {"wrong-update", wrong_update},
                {"wrong-order", wrong_order},
                {"condition", [] { return condition(false); }},
                {"wrong-condition", [] { return condition(true); }},
                {"timeout", timeout},
                {"atomic-wait", atomic_wait},
                {"barrier", barrier},
                {"spin", spin},
                {"poll-under-locks", poll_under_locks},
                {"poll-in-turn", poll_in_turn},
                {"locks", locks},
                {"c11", c11},
                {"cancel", cancel},
                {"detach", detach},
                {"wrong-unlock", wrong_unlock},
                {"wrong-post", wrong_post},
                {"wrong-signal", wrong_signal},
                {"wrong-wake", wrong_wake},
                {"wrong-write", wrong_write},
                {"end", [] { return end(false, [](int) {}); }},
                {"wrong-end", [] { return end(true, [](int) {}); }},
                {"wrong-exit", [] { return end(true, exit); }},
                {"wrong-_exit", [] { return end(true, _exit); }},
                {"wrong-quick_exit", [] { return end(true, quick_exit); }},
                {"processors", processors}};

} // namespace

int main(int argc, char *argv[]) {
    for (const auto &program : PROGRAMS)
        if (argc > 1 && strcmp(program.name, argv[1]) == 0)
            return program.function();
    for (const auto &program : PROGRAMS)
        puts(program.name);
    return 2;
}
