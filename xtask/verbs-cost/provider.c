#include "provider.h"

#define PLACES 64

// Numbers of requests that have come and gone, and those of the requests between them.
static uint64_t head, tail, wr_ids[PLACES];

static int post_send(struct ibv_qp *pair, struct ibv_send_wr *request, struct ibv_send_wr **bad) {
    (void)pair, (void)bad;
    for (; request; request = request->next) wr_ids[tail++ % PLACES] = request->wr_id;
    return 0;
}

static int poll_cq(struct ibv_cq *queue, int most, struct ibv_wc *completions) {
    (void)queue;
    int count = 0;
    for (; count < most && head != tail; count++) {
        completions[count].wr_id = wr_ids[head++ % PLACES];
        completions[count].status = IBV_WC_SUCCESS;
        completions[count].opcode = IBV_WC_SEND;
        completions[count].qp_num = 17;
    }
    return count;
}

static struct ibv_device device;
static struct ibv_context context = {.device = &device, .ops = {.post_send = post_send, .poll_cq = poll_cq}};
static struct ibv_pd domain = {.context = &context};
static struct ibv_mr region = {.context = &context, .pd = &domain, .lkey = 5};
static struct ibv_cq queue = {.context = &context};
static struct ibv_qp pair = {.context = &context, .pd = &domain, .qp_num = 17};

struct ibv_context *provider_context(void) { return &context; }

int provider_query_device(struct ibv_context *of, struct ibv_device_attr *attributes) {
    (void)of;
    *attributes = (struct ibv_device_attr){.max_qp_wr = PLACES, .max_sge = 1, .max_cqe = PLACES};
    return 0;
}

struct ibv_pd *provider_alloc_pd(struct ibv_context *of) {
    (void)of;
    return &domain;
}

struct ibv_mr *provider_reg_mr(struct ibv_pd *in, void *base, size_t bytes, int access) {
    (void)in, (void)base, (void)bytes, (void)access;
    return &region;
}

struct ibv_cq *provider_create_cq(struct ibv_context *of, int entries, void *cq_context,
                                  struct ibv_comp_channel *channel, int vector) {
    (void)of, (void)cq_context, (void)channel, (void)vector;
    queue.cqe = entries;
    return &queue;
}

struct ibv_qp *provider_create_qp(struct ibv_pd *in, struct ibv_qp_init_attr *attributes) {
    (void)in, (void)attributes;
    return &pair;
}

int provider_modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attributes, int mask) {
    (void)of, (void)attributes, (void)mask;
    return 0;
}
