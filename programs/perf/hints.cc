// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// hints.cc -- equivalents of the options of perftest, fio and earlier releases

#include "hints.hh"

#include <fmt/format.h>

namespace {

// Values that the other tool's option accepts and rpma-perf's option of this name refuses.
enum class Values { none, text, number, any };

struct Hint {
    const char *tool;
    std::string_view names; // with a space before and after each
    const char *text;       // follows the name
    std::string_view option = "";
    Values values = Values::none;
};

constexpr char PERFTEST[] = "perftest", FIO[] = "fio", EARLIER[] = "rpma-perf 1.5";
constexpr char NO_RAW_ETHERNET[] = ": there is no raw Ethernet here";
constexpr char ADDRESS_CHOOSES[] = ": here ADDRESS chooses the device, the port and the GID";
constexpr char NO_SUCH_MEMORY[] = ": here memory is ordinary, or --memory of the server";

constexpr Hint HINTS[] = {
    {PERFTEST, " -b --bidirectional ", " is --both here", "size", Values::text},
    {PERFTEST, " -d --ib-dev ", ADDRESS_CHOOSES, "depth", Values::text},
    {PERFTEST, " -c --connection ", ": connections are always reliable; its -q is -c here",
     "connections", Values::text},
    {PERFTEST, " -t --tx-depth ", " is -d, --depth here", "threads", Values::any},
    {PERFTEST, " -e --events ", ": waiting for events is the default here", "elements",
     Values::text},
    {PERFTEST, " -i --ib-port ", ADDRESS_CHOOSES, "inline", Values::text},
    {PERFTEST, " -m --mtu ", ": the MTU of the port is used here", "memory", Values::number},
    {PERFTEST, " -o --outs ", ": -d, --depth bounds outstanding reads here", "operation",
     Values::number},
    {PERFTEST, " -s ", " is -b, --size here", "server", Values::any},
    {PERFTEST, " -w --limit_bw ", " is --rate here, in operations", "warmup", Values::any},
    {PERFTEST, " -a --all ", " is --size 2:8388608 here"},
    {PERFTEST, " -A --atomic_type ", " is -o fetch-add or compare-swap here"},
    {PERFTEST, " -C --report-cycles ", ": figures are in microseconds here"},
    {PERFTEST, " -f --margin ", ": -w, --warmup precedes the measurement here"},
    {PERFTEST, " -F --CPU-freq ", ": the CPU frequency is not checked here"},
    {PERFTEST, " -g --mcg -M --MGID --raw_mcast ", ": there is no multicast here"},
    {PERFTEST, " -H --report-histogram --report-histogrm -U --report-unsorted ",
     " is --plot here, or -j, --json"},
    {PERFTEST, " -I --inline_size ", " is -i, --inline here"},
    {PERFTEST, " -l --post_list ", " is --batch here"},
    {PERFTEST, " -n --iters ", " is -n, --count here"},
    {PERFTEST, " -N --noPeak ", ": the results have no peak here"},
    {PERFTEST, " -O --dualport ", ADDRESS_CHOOSES},
    {PERFTEST, " -q --qp ", " is -c, --connections here"},
    {PERFTEST, " -Q --cq-mod ", ": here every operation completes"},
    {PERFTEST, " -r --rx-depth --recv_post_list ", " follows from -d, --depth here"},
    {PERFTEST, " -R --rdma_cm -z --comm_rdma_cm --com_rdma_cm ",
     ": the connection manager is always used here"},
    {PERFTEST, " -S --sl -T --tos --tclass -L --hop_limit --flow_label ",
     ": the network's configuration chooses the level here"},
    {PERFTEST, " -u --qp-timeout --retry_count ",
     ": the time limits of retries are fixed here"},
    {PERFTEST, " -W --report-counters ", ": 'rdma statistic' shows them"},
    {PERFTEST, " -X --vector ", ": the completion vector is always the first here"},
    {PERFTEST, " -x --gid-index --dlid --pkey_index --ipv6 --ipv6-addr ", ADDRESS_CHOOSES},
    {PERFTEST, " -y --limit_msgrate --rate_limit --latency_gap ",
     " is --rate here, in operations"},
    {PERFTEST, " --rate_units --rate_limit_type --burst_size --typical_pkt_size ",
     ": --rate is in operations here"},
    {PERFTEST, " --report_gbits ", ": the results always have Gbit/s here"},
    {PERFTEST, " --report-both --report-per-port ",
     ": with --both, the results are of both directions here"},
    {PERFTEST, " --run_infinitely ", " is -D, --duration with --interval here"},
    {PERFTEST, " --reversed ", " is -o read here"},
    {PERFTEST, " --reply_every ", " is -o ping-pong here"},
    {PERFTEST, " --use-srq ", ": each connection has its own receives here"},
    {PERFTEST, " --out_json --out_json_file ", " is -j, --json here"},
    {PERFTEST, " --cpu_util ", ": the results always have the processor time here"},
    {PERFTEST, " --perform_warm_up ", " is -w, --warmup here"},
    {PERFTEST, " --mmap --mmap-offset ", " is --memory of the server here"},
    {PERFTEST,
     " --odp --use_hugepages --mr_per_qp --use-null-mr --use_cuda --use_cuda_bus_id "
     "--use_cuda_dmabuf --use_rocm --use_neuron --use_hl --use_mlu --disable_pcie_relaxed ",
     NO_SUCH_MEMORY},
    {PERFTEST,
     " --aes_block_size --aes_xts --credentials_path --data_enc_key_app_path "
     "--data_enc_keys_number --encrypt_on_tx --kek_path --sig_before ",
     ": nothing is encrypted here"},
    {PERFTEST,
     " --log_dci_streams --log_active_dci_streams --inline_recv --use_old_post_send "
     "--wait_destroy --dont_xchg_versions --force-link ",
     ": there is nothing to choose here"},
    {PERFTEST,
     " -B --source_mac -E --dest_mac -G --use_rss -J --dest_ip --source_ip -K --dest_port -k "
     "--source_port -P --client -v --mac_fwd -Y --ethertype -Z --flows --flows_burst "
     "--promiscuous --raw_ipv6 --sniffer --tcp --vlan_en --vlan_pcp ",
     NO_RAW_ETHERNET},
    {FIO, " --rw --readwrite ", " is -o, --operation here; --random and --reads change it"},
    {FIO, " --bs --blocksize --bsrange --bssplit ", " is -b, --size here"},
    {FIO, " --iodepth --iodepth_low ", " is -d, --depth here"},
    {FIO, " --iodepth_batch --iodepth_batch_submit --iodepth_batch_complete ",
     " is --batch here"},
    {FIO, " --runtime --timeout ", " is -D, --duration here"},
    {FIO, " --time_based ", ": -D, --duration is always a time here"},
    {FIO, " --ramp_time ", " is -w, --warmup here, in operations"},
    {FIO, " --number_ios --io_size --loops ", " is -n, --count here, in operations"},
    {FIO, " --numjobs ", " is -c, --connections here, with -t, --threads"},
    {FIO, " --thread --group_reporting ", ": threads measure together here"},
    {FIO, " --rwmixread --rwmixwrite ", " is --reads here"},
    {FIO, " --percentage_random --randrepeat --norandommap --random_distribution ",
     " is --random here, with --region"},
    {FIO, " --rate_iops --thinktime ", " is --rate here, in operations"},
    {FIO, " --filename --directory ", " is --memory of the server here"},
    {FIO, " --filesize --offset ", " is --region here"},
    {FIO, " --direct --sync --fsync --fdatasync --end_fsync ",
     ": -o flush-persistent makes data persistent here"},
    {FIO, " --direct_write_to_pmem ", " is --direct-write of the server here"},
    {FIO, " --busy_wait_polling --hipri ", " is --poll here"},
    {FIO, " --serverip --hostname ", " is ADDRESS here"},
    {FIO, " --output-format --minimal ", " is -j, --json here"},
    {FIO, " --output ", ": results go to the standard output here"},
    {FIO, " --status-interval --log_avg_msec --bwavgtime --iopsavgtime ",
     " is --interval here"},
    {FIO, " --write_bw_log --write_lat_log --write_iops_log --write_hist_log ",
     " is --plot here, or -j, --json with --interval"},
    {FIO, " --do_verify --verify_pattern --verify_fatal ", " is --verify here"},
    {FIO, " --verify ", " has no value here", "verify", Values::any},
    {EARLIER, " --ledger --ring ", ": rpma-check --power-cut and --verify replace it"},
    {FIO, " --ioengine --name --percentile_list --lat_percentiles ",
     ": there is nothing to choose here"},
};

std::string text_of(const Hint &hint, std::string_view name) {
    return fmt::format(" ({}'s {}{})", hint.tool, name, hint.text);
}

} // namespace

// If an argument has several short options, only the first one is looked up.
std::string hint_for_unknown(std::string_view argument) {
    const std::string_view name = argument.starts_with("--")
                                      ? argument.substr(0, argument.find('='))
                                      : argument.substr(0, 2);
    for (const Hint &hint : HINTS)
        if (hint.names.find(fmt::format(" {} ", name)) != std::string_view::npos)
            return text_of(hint, name);
    return "";
}

std::string hint_for_value(std::string_view option, std::string_view value) {
    const bool is_number = !value.empty() && value[0] >= '0' && value[0] <= '9';
    for (const Hint &hint : HINTS)
        if (hint.option == option &&
            (hint.values == Values::any ||
             hint.values == (is_number ? Values::number : Values::text)))
            return text_of(hint, hint.names.substr(1, hint.names.find(' ', 1) - 1));
    return "";
}
