use super::*;
use crate::laid_out::LaidOut;

const FUNCTION: &str = "sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0";

fn tree(files: &LaidOut) -> Tree {
    files.write("sys/.kept", "");
    Tree::below(files.path()).unwrap()
}

fn link_of(speed: &str, width: &str) -> Result<Option<Link>, Unread> {
    let files = LaidOut::new();
    files.write(&format!("{FUNCTION}/current_link_speed"), speed);
    files.write(&format!("{FUNCTION}/current_link_width"), width);
    link(&tree(&files), FUNCTION, "current")
}

#[test]
fn a_link_is_read_as_new_and_old_kernels_write_it() {
    assert_eq!(link_of("16.0 GT/s PCIe\n", "16\n"), Ok(Some(Link { speed: 160, width: 16 })));
    assert_eq!(link_of("8 GT/s\n", "8\n"), Ok(Some(Link { speed: 80, width: 8 })));
    assert_eq!(link_of("2.5 GT/s PCIe\n", "1\n").unwrap().unwrap().to_string(), "2.5 GT/s x1");
    for (speed, width) in [("Unknown", "0"), ("Unknown speed", "255"), ("8.0 GT/s PCIe", "0")] {
        assert_eq!(link_of(speed, width), Ok(None));
    }
    for speed in ["", "fast", "8.11 GT/s", "4294967295 GT/s", "-8 GT/s"] {
        assert!(matches!(link_of(speed, "8"), Err(Unread::Strange { .. })), "{speed}");
    }
}

#[test]
fn the_functions_of_a_device_end_at_the_root() {
    let files = LaidOut::new();
    files.write(&format!("{FUNCTION}/vendor"), "0x15b3");
    files.write(&format!("{FUNCTION}/virtio0/status"), "");
    files.write(&format!("{FUNCTION}/usb1/1-1/bcdDevice"), "");
    files.write("sys/devices/virtual/net/lo/mtu", "");
    let tree = tree(&files);
    let expected = [FUNCTION, "sys/devices/pci0000:40/0000:40:01.0"];
    assert_eq!(functions(&tree, FUNCTION).unwrap(), expected);
    assert_eq!(functions(&tree, &format!("{FUNCTION}/virtio0")).unwrap(), expected);
    assert!(functions(&tree, &format!("{FUNCTION}/usb1/1-1")).unwrap().is_empty());
    assert!(functions(&tree, "sys/devices/virtual/net/lo").unwrap().is_empty());
}

/// A configuration space with a power management capability in front of that of PCI Express.
fn space() -> Vec<u8> {
    let mut bytes = vec![0; 256];
    bytes[0x06] = 0x10;
    bytes[0x34] = 0x40;
    bytes[0x40..0x42].copy_from_slice(&[0x01, 0x60]);
    bytes[0x60..0x62].copy_from_slice(&[0x10, 0x00]);
    bytes[0x64] = 0x02;
    bytes[0x68..0x6a].copy_from_slice(&[0x3e, 0x59]);
    bytes[0x70] = 0x42;
    bytes
}

fn express_of(bytes: &[u8]) -> Result<Option<Express>, Unread> {
    let files = LaidOut::new();
    files.write(&format!("{FUNCTION}/config"), bytes);
    express(&tree(&files), FUNCTION)
}

#[test]
fn sizes_are_those_that_lspci_decodes() {
    let expected = Express { payload_at_most: 512, payload: 256, read_request: 4096, aspm: 2 };
    assert_eq!(express_of(&space()), Ok(Some(expected)));
}

/// A dump in QLogic's guide, page 96, <http://office.manualsonline.com/manuals/mfg/qlogic/3100_1.html?p=96>.
#[test]
fn a_capability_from_a_real_card_is_understood() {
    let mut bytes = vec![0; 256];
    bytes[0x06] = 0x10;
    bytes[0x34] = 0xc0;
    let dump =
        [0x10, 0x00, 0x02, 0x00, 0x02, 0x80, 0x00, 0x00, 0x00, 0x10, 0x0b, 0x00, 0x82, 0x04, 0x00, 0x00];
    bytes[0xc0..0xd0].copy_from_slice(&dump);
    let expected = Express { payload_at_most: 512, payload: 128, read_request: 256, aspm: 0 };
    assert_eq!(express_of(&bytes), Ok(Some(expected)));
}

#[test]
fn whatever_a_space_holds_reading_it_ends() {
    let mut without = space();
    without[0x06] = 0;
    assert_eq!(express_of(&without), Ok(None));
    let mut other = space();
    other[0x60] = 0x11;
    assert_eq!(express_of(&other), Ok(None));
    let mut ring = other;
    ring[0x61] = 0x40;
    assert!(matches!(express_of(&ring), Err(Unread::Strange { .. })));

    for bytes in 0..=255 {
        let error = express_of(&space()[..bytes.min(0x71)]).unwrap_err();
        assert_eq!(matches!(error, Unread::Denied { .. }), bytes <= HEADER_BYTES, "{bytes}: {error:?}");
    }
    let _ = express_of(&[0xff; 256]);
}
