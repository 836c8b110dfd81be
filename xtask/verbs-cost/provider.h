// A driver without a device: it takes each request and completes it at once.

#include <infiniband/verbs.h>

struct ibv_context *provider_context(void);
int provider_query_device(struct ibv_context *context, struct ibv_device_attr *attributes);
struct ibv_pd *provider_alloc_pd(struct ibv_context *context);
struct ibv_mr *provider_reg_mr(struct ibv_pd *domain, void *base, size_t bytes, int access);
struct ibv_cq *provider_create_cq(struct ibv_context *context, int entries, void *cq_context,
                                  struct ibv_comp_channel *channel, int vector);
struct ibv_qp *provider_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *attributes);
int provider_modify_qp(struct ibv_qp *pair, struct ibv_qp_attr *attributes, int mask);
