// Sends and completions by the header's inline functions, with nothing beside them.

#include "provider.h"
#include <stdlib.h>

int main(int count, char **arguments) {
    long messages = count > 1 ? atol(arguments[1]) : 0;
    struct ibv_context *context = provider_context();
    struct ibv_pd *domain = provider_alloc_pd(context);
    struct ibv_cq *queue = provider_create_cq(context, 64, NULL, NULL, 0);
    struct ibv_qp_init_attr attributes = {.send_cq = queue, .recv_cq = queue};
    struct ibv_qp *pair = provider_create_qp(domain, &attributes);
    static char buffer[64];
    struct ibv_mr *region = provider_reg_mr(domain, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);

    for (long message = 0; message < messages; message++) {
        struct ibv_sge piece = {(uintptr_t)buffer, sizeof buffer, region->lkey};
        struct ibv_send_wr *bad, request = {
            .wr_id = message,
            .sg_list = &piece,
            .num_sge = 1,
            .opcode = IBV_WR_SEND,
            .send_flags = IBV_SEND_SIGNALED,
        };
        if (ibv_post_send(pair, &request, &bad)) return 1;
        struct ibv_wc completion;
        int polled;
        while ((polled = ibv_poll_cq(queue, 1, &completion)) == 0) {}
        if (polled < 0 || completion.status != IBV_WC_SUCCESS) return 1;
    }
    return 0;
}
