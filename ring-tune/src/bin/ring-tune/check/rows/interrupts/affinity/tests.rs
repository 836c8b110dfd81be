use super::*;

#[test]
fn all_devices_of_a_shared_interrupt_are_named() {
    let device_of = |what: &str| {
        let source = Source { name: "16".into(), what: what.into(), counts: vec![] };
        device(&source).to_owned()
    };
    assert_eq!(device_of("IR-PCI-MSI 163844-edge virtio5-output.1"), "virtio5-output.1");
    let shared = "IO-APIC 16-fasteoi uhci_hcd:usb5, uhci_hcd:usb11, ahci[0000:02:00.0]";
    assert_eq!(device_of(shared), "uhci_hcd:usb5, uhci_hcd:usb11, ahci[0000:02:00.0]");
    assert_eq!(device_of(""), "");
    assert_eq!(device_of("timer"), "timer");
}
