// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pieces.cc -- checks of scatter/gather lists

#include "post/pieces.hh"

#include <cstdarg>
#include <cstdio>

namespace rpma {

Text Origin::prefix() const {
    Text text;
    if (array != nullptr)
        text.add("%s[%" PRIu32 "]: ", array, index);
    return text;
}

int refuse_operation(const Origin &origin, const char *format, ...) {
    if (origin.is_behind)
        return RPMA_E_INVAL;
    Call call(origin.function);
    if (call.fails(RPMA_E_INVAL, 0)) {
        Text text;
        va_list values;
        va_start(values, format);
        std::vsnprintf(text.chars, sizeof(text.chars), format, values);
        va_end(values);
        call.log(__FILE__, __LINE__, "", "%s%s", origin.prefix().chars, text.chars);
    }
    return call.finish();
}

namespace {

void refuse_number(const Origin &origin, uint32_t nsge, const MostPieces &limit) {
    if (limit.most < limit.asked)
        refuse_operation(origin,
                         "nsge is %" PRIu32 "; possible: %" PRIu32
                         " at most; the device reads into no more",
                         nsge, limit.most);
    else
        refuse_operation(
            origin, "nsge is %" PRIu32 "; possible: %" PRIu32 " at most; %s() asks for more",
            nsge, limit.most, limit.setting);
}

} // namespace

int gather(const Origin &origin, Pieces pieces, const MostPieces &limit, ibv_sge *sges) {
    const auto [sgl, nsge] = pieces;
    if (nsge > limit.most) {
        refuse_number(origin, nsge, limit);
        return -1;
    }
    uint64_t room = UINT32_MAX;
    int used = 0;
    for (const rpma_sge *piece = sgl; piece != sgl + nsge; piece++) {
        if (piece->mr == nullptr && (piece->offset | piece->len) != 0) {
            refuse_operation(origin, "sgl[%td]: " RPMA_NO_MEMORY, piece - sgl, "mr",
                             piece->offset, piece->len);
            return -1;
        }
        if (piece->len > room) {
            refuse_operation(origin,
                             "piece %td has len %zu, those before it have %" PRIu64
                             "; possible: 4294967295 (UINT32_MAX) in all",
                             piece - sgl, piece->len, UINT32_MAX - room);
            return -1;
        }
        room -= piece->len;
        if (piece->len != 0)
            sges[used++] = slice(*piece->mr, piece->offset, piece->len);
    }
    return used;
}

} // namespace rpma
