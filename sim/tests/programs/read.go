// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// read.go -- for explore: a client whose goroutines read texts of a server: read [ADDRESS of the server]
package main

/*
#cgo LDFLAGS: -lrdmacm -libverbs
#include <rdma/rdma_verbs.h>
#include <stdlib.h>

struct text { uint64_t address; uint32_t key; };

static int read_text(struct rdma_cm_id *id, uintptr_t number, void *to, size_t size, struct ibv_mr *mr) {
	const struct text *from = id->event->param.conn.private_data;
	return rdma_post_read(id, (void *)number, to, size, mr, 0, from->address + number * size, from->key);
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

const size, reads = 64, 3

var mistake string // set by the linker: a goroutine does not wait for its read

func must(what string, failed bool, err error) {
	if failed {
		fmt.Println(what, err)
		os.Exit(1)
	}
}

// endpoint returns an ID for the server, or one for a connection to the server.
func endpoint(server string) *C.struct_rdma_cm_id {
	var hints C.struct_rdma_addrinfo
	var found *C.struct_rdma_addrinfo
	var id *C.struct_rdma_cm_id
	var attr C.struct_ibv_qp_init_attr
	hints.ai_port_space = C.RDMA_PS_TCP
	var node *C.char
	if server == "" {
		hints.ai_flags = C.RAI_PASSIVE
	} else {
		node = C.CString(server)
	}
	ret, err := C.rdma_getaddrinfo(node, C.CString("7471"), &hints, &found)
	must("rdma_getaddrinfo", ret != 0, err)
	attr.cap.max_send_wr, attr.cap.max_recv_wr = reads, 1
	attr.cap.max_send_sge, attr.cap.max_recv_sge = 1, 1
	attr.sq_sig_all = 1
	ret, err = C.rdma_create_ep(&id, found, nil, &attr)
	must("rdma_create_ep", ret != 0, err)
	return id
}

func text(number int) string {
	return fmt.Sprintf("text %d of the server", number)
}

func serve() {
	var id *C.struct_rdma_cm_id
	listener := endpoint("")
	ret, err := C.rdma_listen(listener, 0)
	must("rdma_listen", ret != 0, err)
	ret, err = C.rdma_get_request(listener, &id)
	must("rdma_get_request", ret != 0, err)
	buffer := C.calloc(reads, size)
	for i := 0; i < reads; i++ {
		copy(unsafe.Slice((*byte)(unsafe.Add(buffer, i*size)), size), text(i))
	}
	mr, err := C.rdma_reg_read(id, buffer, reads*size)
	must("rdma_reg_read", mr == nil, err)
	from := (*C.struct_text)(C.malloc(C.sizeof_struct_text))
	from.address, from.key = C.uint64_t(uintptr(buffer)), mr.rkey
	var param C.struct_rdma_conn_param
	param.responder_resources, param.initiator_depth = reads, reads
	param.private_data, param.private_data_len = unsafe.Pointer(from), C.sizeof_struct_text
	ret, err = C.rdma_accept(id, &param)
	must("rdma_accept", ret != 0, err)
	var event *C.struct_rdma_cm_event
	ret, err = C.rdma_get_cm_event(id.channel, &event)
	must("rdma_get_cm_event", ret != 0 || event.event != C.RDMA_CM_EVENT_DISCONNECTED, err)
}

func request(server string) {
	id := endpoint(server)
	buffer := C.calloc(reads, size)
	mr, err := C.rdma_reg_msgs(id, buffer, reads*size)
	must("rdma_reg_msgs", mr == nil, err)
	var param C.struct_rdma_conn_param
	param.responder_resources, param.initiator_depth = reads, reads
	ret, err := C.rdma_connect(id, &param)
	must("rdma_connect", ret != 0, err)

	var done [reads]chan bool
	var ended sync.WaitGroup
	for i := range done {
		done[i] = make(chan bool, 1)
		ended.Add(1)
		go func(i int) {
			defer ended.Done()
			part := unsafe.Add(buffer, i*size)
			ret, err := C.read_text(id, C.uintptr_t(i), part, size, mr)
			must("rdma_post_read", ret != 0, err)
			if mistake != "" && i == reads-1 {
				runtime.Gosched()
			} else {
				<-done[i]
			}
			if found := C.GoString((*C.char)(part)); found != text(i) {
				fmt.Printf("wrong: %q instead of %q\n", found, text(i))
				os.Exit(3)
			}
		}(i)
	}
	go func() {
		for range done {
			var wc C.struct_ibv_wc
			ret, err := C.rdma_get_send_comp(id, &wc)
			must("rdma_get_send_comp", ret != 1 || wc.status != 0, err)
			done[wc.wr_id] <- true
		}
	}()
	all := make(chan bool)
	go func() {
		ended.Wait()
		close(all)
	}()
	runtime.GC()
	select {
	case <-all:
		fmt.Println("read texts by Go")
	case <-time.After(time.Minute):
		fmt.Println("late")
		os.Exit(1)
	}
	C.rdma_disconnect(id)
}

func main() {
	if len(os.Args) > 1 {
		request(os.Args[1])
	} else {
		serve()
	}
}
