// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// message.go -- sends a message from a client to a server: message [ADDRESS of the server]
package main

/*
#cgo LDFLAGS: -lrdmacm -libverbs
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

const size = 64

func must(what string, failed bool, err error) {
	if failed {
		fmt.Println(what, err)
		os.Exit(1)
	}
}

// endpoint returns an ID for the server, or one that is connected to the server.
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
	attr.cap.max_send_wr, attr.cap.max_recv_wr = 1, 1
	attr.cap.max_send_sge, attr.cap.max_recv_sge = 1, 1
	attr.sq_sig_all = 1
	ret, err = C.rdma_create_ep(&id, found, nil, &attr)
	must("rdma_create_ep", ret != 0, err)
	return id
}

func main() {
	buffer := C.calloc(1, size)
	var wc C.struct_ibv_wc
	if len(os.Args) > 1 {
		id := endpoint(os.Args[1])
		mr, err := C.rdma_reg_msgs(id, buffer, size)
		must("rdma_reg_msgs", mr == nil, err)
		ret, err := C.rdma_connect(id, nil)
		must("rdma_connect", ret != 0, err)
		copy(unsafe.Slice((*byte)(buffer), size), "a message of Go")
		ret, err = C.rdma_post_send(id, nil, buffer, size, mr, 0)
		must("rdma_post_send", ret != 0, err)
		ret, err = C.rdma_get_send_comp(id, &wc)
		must("rdma_get_send_comp", ret != 1 || wc.status != 0, err)
		C.rdma_disconnect(id)
		return
	}
	listener := endpoint("")
	ret, err := C.rdma_listen(listener, 0)
	must("rdma_listen", ret != 0, err)
	var id *C.struct_rdma_cm_id
	ret, err = C.rdma_get_request(listener, &id)
	must("rdma_get_request", ret != 0, err)
	mr, err := C.rdma_reg_msgs(id, buffer, size)
	must("rdma_reg_msgs", mr == nil, err)
	ret, err = C.rdma_post_recv(id, nil, buffer, size, mr)
	must("rdma_post_recv", ret != 0, err)
	ret, err = C.rdma_accept(id, nil)
	must("rdma_accept", ret != 0, err)
	ret, err = C.rdma_get_recv_comp(id, &wc)
	must("rdma_get_recv_comp", ret != 1 || wc.status != 0, err)
	fmt.Println("received", C.GoString((*C.char)(buffer)))
}
