//! A table of functions of which each ends the program, to be filled in with those that a test needs.

use ring_verbs::sys::Functions;

/// A function that nobody has written.
trait Unscripted {
    const ABORTS: Self;
}

macro_rules! arities {
    ($(($($argument:ident)*))*) => {$(
        impl<$($argument,)* R> Unscripted for unsafe extern "C" fn($($argument),*) -> R {
            const ABORTS: Self = {
                extern "C" fn aborts<$($argument,)* R>($(_: $argument),*) -> R {
                    panic!("the program calls a function that is not scripted: the trace says which")
                }
                aborts::<$($argument,)* R>
            };
        }
    )*};
}

arities! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

macro_rules! unscripted {
    (required { $($name:ident)* } optional { $($later:ident)* }) => {
        Functions { $($name: Unscripted::ABORTS,)* $($later: None,)* }
    };
}

/// Nothing is there.
pub(crate) const UNSCRIPTED: Functions = unscripted! {
    required {
        ibv_get_device_list ibv_free_device_list ibv_get_device_name ibv_get_device_guid ibv_open_device
        ibv_close_device ibv_get_async_event ibv_ack_async_event ibv_query_device ibv_query_port ibv_query_gid
        _ibv_query_gid_ex ibv_query_pkey ibv_get_pkey_index ibv_alloc_pd ibv_dealloc_pd ibv_reg_mr ibv_reg_mr_iova
        ibv_rereg_mr ibv_dereg_mr ibv_create_comp_channel ibv_destroy_comp_channel ibv_create_cq ibv_resize_cq
        ibv_destroy_cq ibv_get_cq_event ibv_ack_cq_events ibv_create_srq ibv_modify_srq ibv_query_srq
        ibv_destroy_srq ibv_create_qp ibv_qp_to_qp_ex ibv_modify_qp ibv_query_qp ibv_destroy_qp ibv_create_ah
        ibv_init_ah_from_wc ibv_create_ah_from_wc ibv_destroy_ah ibv_fork_init
    }
    optional { ibv_reg_mr_iova2 _ibv_query_gid_table ibv_query_qp_data_in_order ibv_is_fork_initialized }
};
