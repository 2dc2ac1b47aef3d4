// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// devices.rs -- accepts a connection, or connects and reads the private data of the server:
// devices [ADDRESS of the server]

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

#[repr(C)]
struct AddrInfo {
    flags: c_int,
    family: c_int,
    qp_type: c_int,
    port_space: c_int,
    rest: [usize; 16],
}

#[repr(C)]
struct ConnParam {
    private_data: *const c_void,
    private_data_len: u8,
    numbers: [u8; 16],
}

#[link(name = "ibverbs")]
extern "C" {
    fn ibv_get_device_list(count: *mut c_int) -> *mut *mut c_void;
    fn ibv_get_device_name(device: *mut c_void) -> *const c_char;
    fn ibv_open_device(device: *mut c_void) -> *mut c_void;
    fn ibv_alloc_pd(context: *mut c_void) -> *mut c_void;
    fn ibv_reg_mr(pd: *mut c_void, addr: *mut c_void, length: usize, access: c_int) -> *mut c_void;
    fn ibv_dereg_mr(mr: *mut c_void) -> c_int;
    fn ibv_dealloc_pd(pd: *mut c_void) -> c_int;
    fn ibv_close_device(context: *mut c_void) -> c_int;
}

#[link(name = "rdmacm")]
extern "C" {
    fn rdma_getaddrinfo(
        node: *const c_char,
        service: *const c_char,
        hints: *const AddrInfo,
        found: *mut *mut c_void,
    ) -> c_int;
    fn rdma_create_ep(
        id: *mut *mut c_void,
        info: *mut c_void,
        pd: *mut c_void,
        attr: *mut c_void,
    ) -> c_int;
    fn rdma_listen(id: *mut c_void, backlog: c_int) -> c_int;
    fn rdma_get_request(listener: *mut c_void, id: *mut *mut c_void) -> c_int;
    fn rdma_reject(id: *mut c_void, data: *const c_void, length: u8) -> c_int;
    fn rdma_connect(id: *mut c_void, param: *mut ConnParam) -> c_int;
}

fn check(what: &str, result: c_int) {
    assert!(result == 0, "{}: {}", what, std::io::Error::last_os_error());
}

unsafe fn show_devices() {
    let mut count = 0;
    let list = ibv_get_device_list(&mut count);
    for i in 0..count as usize {
        let device = *list.add(i);
        let context = ibv_open_device(device);
        let pd = ibv_alloc_pd(context);
        let mut memory = vec![0u8; 4096];
        let mr = ibv_reg_mr(pd, memory.as_mut_ptr() as *mut c_void, memory.len(), 1);
        assert!(!mr.is_null());
        check("ibv_dereg_mr", ibv_dereg_mr(mr));
        check("ibv_dealloc_pd", ibv_dealloc_pd(pd));
        check("ibv_close_device", ibv_close_device(context));
        println!("device {}", CStr::from_ptr(ibv_get_device_name(device)).to_str().unwrap());
    }
}

fn main() {
    let server = std::env::args().nth(1).map(|text| CString::new(text).unwrap());
    let service = CString::new("7471").unwrap();
    let hints = AddrInfo {
        flags: if server.is_some() { 0 } else { 1 },
        family: 0,
        qp_type: 0,
        port_space: 0x106,
        rest: [0; 16],
    };
    let (mut found, mut id) = (null_mut(), null_mut());
    unsafe {
        show_devices();
        let node = server.as_ref().map_or(null(), |text| text.as_ptr());
        check("rdma_getaddrinfo", rdma_getaddrinfo(node, service.as_ptr(), &hints, &mut found));
        check("rdma_create_ep", rdma_create_ep(&mut id, found, null_mut(), null_mut()));
        if server.is_some() {
            let mut param = ConnParam { private_data: null(), private_data_len: 0, numbers: [0; 16] };
            param.numbers[7] = 1; // qp_num: the ID has no queue pair
            assert!(rdma_connect(id, &mut param) == -1);
            println!("connect: {}", std::io::Error::last_os_error());
            return;
        }
        check("rdma_listen", rdma_listen(id, 0));
        let mut request = null_mut();
        check("rdma_get_request", rdma_get_request(id, &mut request));
        check("rdma_reject", rdma_reject(request, null(), 0));
        println!("rejected a request");
    }
}
