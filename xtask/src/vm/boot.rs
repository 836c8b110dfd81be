//! What the guest starts from: a kernel that need not unpack itself, and modules in the order of their needs.

use std::collections::HashMap;

/// The kernel inside a boot image, compressed by xz; `None` where it is packed in another way.
///
/// A virtual machine can start the bare kernel, and spares itself two seconds of emulated unpacking. The offsets are
/// those of the x86 boot protocol, 2.08 and later.
pub(super) fn xz_payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| -> Option<usize> {
        let bytes = image.get(at..at + 4)?;
        usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
    };
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let sectors = match image[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let begin = (sectors + 1) * 512 + word(0x248)?;
    let payload = image.get(begin..begin + word(0x24c)?)?;
    // The last four bytes are the unpacked size, which is the kernel's own addition.
    payload.starts_with(b"\xfd7zXZ\0").then(|| &payload[..payload.len() - 4])
}

/// The paths of modules and of what they need, each after its needs, from the text of `modules.dep`.
///
/// What the kernel has built in is in no line, and needs no loading.
pub(super) fn load_order<'a>(dependencies: &'a str, names: &[&str]) -> Vec<&'a str> {
    let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
    let needs: HashMap<&str, &str> = lines.collect();
    let mut order = Vec::new();
    for name in names {
        if let Some(path) = needs.keys().find(|path| module_name(path) == *name) {
            add(path, &needs, &mut order);
        }
    }
    order
}

fn add<'a>(path: &'a str, needs: &HashMap<&'a str, &'a str>, order: &mut Vec<&'a str>) {
    if order.contains(&path) {
        return;
    }
    for need in needs.get(path).into_iter().flat_map(|needs| needs.split_whitespace()) {
        add(need, needs, order);
    }
    order.push(path);
}

/// `veth` of `kernel/drivers/net/veth.ko.xz`.
pub(super) fn module_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 512 * 3 + 16];
        image[0x1f1] = 2;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248] = 16;
        image[0x24c] = u8::try_from(payload.len()).expect("a short payload");
        image.extend(payload);
        image.extend(b"what follows");
        image
    }

    #[test]
    fn the_kernel_is_cut_out_of_its_image() {
        assert_eq!(xz_payload(&image(b"\xfd7zXZ\0packed\0\0\x10\0")), Some(&b"\xfd7zXZ\0packed"[..]));
    }

    #[test]
    fn an_image_that_is_packed_otherwise_is_left_alone() {
        assert_eq!(xz_payload(&image(b"\x28\xb5\x2f\xfdpacked\0\0\x10\0")), None);
        assert_eq!(xz_payload(b"short"), None);
        let mut cut = image(b"\xfd7zXZ\0packed\0\0\x10\0");
        cut.truncate(512 * 3 + 20);
        assert_eq!(xz_payload(&cut), None);
    }

    #[test]
    fn modules_come_after_their_needs_and_once() {
        let dependencies = "\
            kernel/a/rdma_rxe.ko.xz: kernel/b/ib_uverbs.ko.xz kernel/b/ib_core.ko.xz\n\
            kernel/b/ib_uverbs.ko.xz: kernel/b/ib_core.ko.xz\n\
            kernel/b/ib_core.ko.xz:\n\
            kernel/c/veth.ko.xz:\n";
        let order = load_order(dependencies, &["rdma_rxe", "ib_uverbs", "built_in"]);
        let names: Vec<_> = order.into_iter().map(module_name).collect();
        assert_eq!(names, ["ib_core", "ib_uverbs", "rdma_rxe"]);
    }
}
